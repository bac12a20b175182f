/** The tree of a chat as it is listed, and the operations on it. */

import { branchCount, linked, pageOf, type TreeFilter, type TreeRow } from '../state/tree';
import { compareBranches, entriesOf, type BranchComparison, type LogEntry } from '../state/comparison';
import { object, text } from '../state/meta';
import type { Uri } from '../wire/protocol';
import { SvelteMap } from 'svelte/reactivity';
import type { Host } from './host.svelte';

/** The numbers of branches of the trees that were last shown, by chat. */
export const knownBranches = new SvelteMap<Uri, number>();
const MOST_KNOWN = 200;

/** The rows of a request. */
const PAGE = 1_000;
/** The rows that are loaded without being asked for. */
export const ROWS_AT_FIRST = 10_000;
/** The most rows that the page keeps. */
export const MOST_ROWS = 50_000;
/** The delay after a key in the search field, and after a change of the chat. */
const SOON_MS = 150;
/** What is read of a log for a comparison: a page has at most 4 MiB. */
const MOST_ENTRY_PAGES = 16;
const ENTRIES_PAGE = 5_000;
/** A summary takes as long as a model takes. */
const SUMMARY_PATIENCE_MS = 15 * 60_000;

export type OperationKind = 'navigate' | 'merge' | 'compact';

/** An operation that may take as long as a model takes. */
export interface TreeOperation {
  kind: OperationKind;
  isAborting: boolean;
}

export interface NavigateOptions {
  summarize?: boolean;
  instructions?: string;
}

export interface Navigated {
  moved: boolean;
  /** The text of the user message before which the leaf is now. */
  text: string | undefined;
}

/** The summary was cancelled by the person who asked for it. */
export class Aborted extends Error {}

export class TreeStore {
  rows = $state.raw<readonly TreeRow[]>([]);
  /** The number of rows that the host has. */
  total = $state(0);
  isLoaded = $state(false);
  isLoading = $state(false);
  problem = $state<string | undefined>();
  filter = $state<TreeFilter>('default');
  search = $state('');
  operation = $state.raw<TreeOperation | undefined>();

  #host: Host;
  readonly chat: Uri;
  #wanted = ROWS_AT_FIRST;
  #fetch = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(host: Host, chat: Uri) {
    this.#host = host;
    this.chat = chat;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#fetch++;
  }

  select(filter: TreeFilter): void {
    this.filter = filter;
    this.#wanted = ROWS_AT_FIRST;
    void this.refresh();
  }

  /** Searches a moment after the last key. */
  find(words: string): void {
    this.search = words;
    this.#wanted = ROWS_AT_FIRST;
    this.refreshSoon();
  }

  refreshSoon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.refresh(), SOON_MS);
  }

  /** The rows that can still be loaded. */
  get left(): number {
    return Math.max(0, Math.min(this.total, MOST_ROWS) - this.rows.length);
  }

  loadMore(): void {
    this.#wanted = Math.min(MOST_ROWS, this.rows.length + ROWS_AT_FIRST);
    void this.refresh();
  }

  /** Fetches the rows again. The old ones are shown until all are there; the first ones appear page by page. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    const fetch = ++this.#fetch;
    this.isLoading = true;
    this.problem = undefined;
    const request = { channel: this.chat, filter: this.filter, limit: PAGE };
    const words = this.search.trim();
    const found: TreeRow[] = [];
    const isFirst = !this.isLoaded;
    let cursor: string | undefined;
    try {
      do {
        const params = { ...request, ...(words ? { search: words } : {}), ...(cursor ? { cursor } : {}) };
        const page = pageOf(await this.#host.client.requestOwn('x-grove/tree', params));
        if (fetch !== this.#fetch) return;
        found.push(...page.rows);
        cursor = page.rows.length > 0 ? page.next : undefined;
        this.total = page.total;
        if (isFirst) this.rows = linked(found);
      } while (cursor !== undefined && found.length < this.#wanted);
      this.rows = linked(found);
      this.isLoaded = true;
      if (this.filter === 'default' && !words) remember(this.chat, branchCount(this.rows));
    } catch (error) {
      if (fetch === this.#fetch) this.problem = message(error);
    } finally {
      if (fetch === this.#fetch) this.isLoading = false;
    }
  }

  /** Goes to an entry; `undefined` is the place before the first one. */
  async navigate(entry: string | undefined, { summarize, instructions }: NavigateOptions = {}): Promise<Navigated> {
    const result = object(
      await this.#run(summarize ? 'navigate' : undefined, 'x-grove/navigate', {
        entry: entry ?? null,
        ...(summarize ? { summarize } : {}),
        ...(summarize && instructions ? { instructions } : {}),
      }),
    );
    return { moved: result?.['moved'] === true, text: textOf(result) };
  }

  async label(entry: string, label: string): Promise<void> {
    await this.#run(undefined, 'x-grove/label', { entry, label });
  }

  async merge(entry: string, instructions: string): Promise<void> {
    await this.#run('merge', 'x-grove/merge', { entry, ...(instructions ? { instructions } : {}) });
  }

  async compact(instructions: string): Promise<void> {
    await this.#run('compact', 'x-grove/compact', instructions ? { instructions } : {});
  }

  /** Creates a session from the conversation before a user message. */
  async branch(entry: string): Promise<{ session: Uri; text: string }> {
    const result = object(await this.#run(undefined, 'x-grove/branch', { entry }));
    return { session: text(result?.['session']), text: textOf(result) ?? '' };
  }

  async fork(): Promise<Uri> {
    return text(object(await this.#run(undefined, 'x-grove/fork', {}))?.['session']);
  }

  /** Cancels the summary that is being made, also one that another client asked for. */
  async abort(): Promise<void> {
    if (this.operation) this.operation = { ...this.operation, isAborting: true };
    await this.#host.client.requestOwn('x-grove/abort', { channel: this.chat });
  }

  /** Reads the log and compares two of its branches; undefined if the log is too long. */
  async compare(left: string, right: string): Promise<BranchComparison | undefined> {
    const all: LogEntry[] = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < MOST_ENTRY_PAGES; pages++) {
      const params = { channel: this.chat, limit: ENTRIES_PAGE, ...(cursor ? { cursor } : {}) };
      const page = entriesOf(await this.#host.client.requestOwn('x-grove/entries', params));
      all.push(...page.entries);
      if (!page.more || page.cursor === undefined) return compareBranches(all, left, right);
      cursor = page.cursor;
    }
    return undefined;
  }

  async #run(
    kind: OperationKind | undefined,
    method: `x-grove/${string}`,
    params: Record<string, unknown>,
  ): Promise<unknown> {
    if (kind) this.operation = { kind, isAborting: false };
    try {
      return await this.#host.client.requestOwn(method, { channel: this.chat, ...params }, kind && SUMMARY_PATIENCE_MS);
    } catch (error) {
      if (kind && this.operation?.isAborting) throw new Aborted();
      throw error;
    } finally {
      if (kind) this.operation = undefined;
      this.refreshSoon();
    }
  }
}

function remember(chat: Uri, branches: number): void {
  if (knownBranches.get(chat) === branches) return;
  knownBranches.set(chat, branches);
  for (const oldest of knownBranches.keys()) {
    if (knownBranches.size <= MOST_KNOWN) return;
    knownBranches.delete(oldest);
  }
}

function textOf(result: Record<string, unknown> | undefined): string | undefined {
  return typeof result?.['text'] === 'string' ? result['text'] : undefined;
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The main chat of a session, as the host names it. */
export async function mainChatOf(host: Host, session: Uri): Promise<Uri | undefined> {
  return new Promise((resolve) => {
    const answer = (): void => {
      const { state, problem } = channel;
      const chat = state?.defaultChat ?? state?.chats[0]?.resource;
      if (chat === undefined && problem === undefined) return;
      channel.close();
      resolve(chat);
    };
    const channel = host.client.open('session', session, () => answer());
    // Already open, or closed by the host's answer.
    queueMicrotask(answer);
  });
}
