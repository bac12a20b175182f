/** The branches of a chat: loaded when the chat is idle, and again after its turns have changed. */

import { type Branches, branchesOf, type BranchRow, newestLeaf, NO_BRANCHES, rowsOf } from '../state/branches';
import { object } from '../state/meta';
import type { Uri } from '../wire/protocol';
import type { ChatState } from '../wire/types';
import type { Host } from './host.svelte';

/** The rows of one request. A tree with more messages shows the branches of the first ones. */
const MOST_ROWS = 10_000;
/** The pages that are read to find the end of a branch. */
const MOST_PAGES = 20;
const SETTLE_MS = 150;
/** The log gets a turn a moment after its end. */
const LATER_MS = 400;
const ATTEMPTS = 5;

export class BranchStore {
  branches = $state.raw<Branches>(NO_BRANCHES);

  #host: Host;
  #chat: Uri;
  #loaded = '';
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(host: Host, chat: Uri) {
    this.#host = host;
    this.#chat = chat;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** The chat has changed. While a turn runs, the branches stay as they were. */
  see(chat: ChatState): void {
    if (chat.activeTurn || chat.turns.length === 0) return;
    const turns = chat.turns.map((turn) => turn.id).join(' ');
    if (turns === this.#loaded) return;
    this.#loaded = turns;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#load(chat.turns.at(-1)!.id, ATTEMPTS), SETTLE_MS);
  }

  async #load(newest: string, attempts: number): Promise<void> {
    try {
      const { rows } = await page(this.#host, this.#chat, 'user-only');
      const branches = branchesOf(rows);
      if (this.#closed) return;
      this.branches = branches;
      // A host of an earlier version names no turns.
      const hasTurns = rows.some((row) => row.turn !== undefined);
      if (branches.entries.has(newest) || (rows.length > 0 && !hasTurns) || attempts <= 1) return;
      this.#timer = setTimeout(() => void this.#load(newest, attempts - 1), LATER_MS);
    } catch {
      // The host has no tree of this chat, or is away: then there are no branches to show until the turns change.
      this.#loaded = '';
    }
  }
}

/** Goes to the newest end of the branch of an entry. Returns the message that came back, if it has no answer. */
export async function switchTo(host: Host, chat: Uri, entry: string): Promise<string | undefined> {
  const rows: BranchRow[] = [];
  let cursor: string | undefined;
  for (let read = 0; read < MOST_PAGES; read++) {
    const next = await page(host, chat, 'all', cursor);
    rows.push(...next.rows);
    cursor = next.cursor;
    if (cursor === undefined) break;
  }
  const leaf = newestLeaf(rows, entry);
  if (leaf === undefined) throw new Error('the branch was not found');
  const outcome = object(await host.client.requestOwn('x-grove/navigate', { channel: chat, entry: leaf }));
  return typeof outcome?.['text'] === 'string' ? outcome['text'] : undefined;
}

/** Moves the leaf before the message of a turn, so that the next message begins a branch there. */
export async function navigate(host: Host, chat: Uri, turn: string): Promise<void> {
  const { rows } = await page(host, chat, 'user-only');
  const entry = branchesOf(rows).entries.get(turn);
  if (entry === undefined) throw new Error('the host does not know where this message is');
  await host.client.requestOwn('x-grove/navigate', { channel: chat, entry });
}

async function page(
  host: Host,
  chat: Uri,
  filter: string,
  cursor?: string,
): Promise<{ rows: BranchRow[]; cursor: string | undefined }> {
  const params = { channel: chat, filter, limit: MOST_ROWS, ...(cursor === undefined ? {} : { cursor }) };
  const answer = object(await host.client.requestOwn('x-grove/tree', params));
  const next = answer?.['nextCursor'];
  return { rows: rowsOf(answer?.['rows']), cursor: typeof next === 'string' ? next : undefined };
}
