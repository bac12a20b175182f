/** Two branches of a session side by side, from the entries of its log (`docs/format.md`). */

import { object, objects, text } from './meta';

export interface LogEntry {
  id: string;
  parent: string | undefined;
  /** The entry as the log has it. */
  line: Record<string, unknown>;
}

/** A file that a branch changed. */
export interface BranchEdit {
  path: string;
  /** The hash of the new content; undefined if the file was deleted. */
  after: string | undefined;
  added: number;
  removed: number;
}

/** A step of a branch: a message of the user with everything until the next one. */
export interface BranchTurn {
  id: string;
  prompt: string;
  answer: string;
  /** The names of the called tools. */
  tools: string[];
  edits: BranchEdit[];
}

export interface BranchComparison {
  /** The last common entry; undefined if the branches have none. */
  ancestor: string | undefined;
  left: BranchTurn[];
  right: BranchTurn[];
}

/** Whether a branch's change of a file is found on the other branch. */
export type EditMatch = 'same' | 'different' | 'only';

/** The entries of a page. Lines that are no entries of the tree are linked through. */
export function entriesOf(result: unknown): { entries: LogEntry[]; cursor: string | undefined; more: boolean } {
  const { entries, cursor, more } = object(result) ?? {};
  return {
    entries: objects(entries).flatMap((line) => {
      const { id, parentId } = line;
      return typeof id === 'string' ? [{ id, parent: typeof parentId === 'string' ? parentId : undefined, line }] : [];
    }),
    cursor: typeof cursor === 'string' ? cursor : undefined,
    more: more === true,
  };
}

/** The entries from the root to one of them. A log with a cycle of parents ends where it would repeat. */
export function pathTo(entries: ReadonlyMap<string, LogEntry>, id: string): LogEntry[] {
  const path: LogEntry[] = [];
  const seen = new Set<string>();
  for (
    let at = entries.get(id);
    at && !seen.has(at.id);
    at = at.parent === undefined ? undefined : entries.get(at.parent)
  ) {
    seen.add(at.id);
    if (!isOwn(at)) path.push(at);
  }
  return path.reverse();
}

/** Entries of Grove's own are not part of the tree. */
function isOwn({ line }: LogEntry): boolean {
  return line['type'] === 'custom' && text(line['customType']).startsWith('grove.');
}

export function compareBranches(all: readonly LogEntry[], left: string, right: string): BranchComparison {
  const entries = new Map(all.map((entry) => [entry.id, entry]));
  const a = pathTo(entries, left);
  const b = pathTo(entries, right);
  let common = 0;
  while (common < a.length && common < b.length && a[common]!.id === b[common]!.id) common++;
  return { ancestor: a[common - 1]?.id, left: turnsOf(a.slice(common)), right: turnsOf(b.slice(common)) };
}

/** The turns of a path. Entries before the first message of the user are a turn without a prompt. */
export function turnsOf(path: readonly LogEntry[]): BranchTurn[] {
  const turns: BranchTurn[] = [];
  for (const { id, line } of path) {
    const said = spoken(line);
    if (!said) continue;
    if (said.role === 'user' || turns.length === 0) {
      turns.push({ id, prompt: '', answer: '', tools: [], edits: [] });
    }
    const turn = turns.at(-1)!;
    if (said.role === 'user') turn.prompt = said.text;
    else if (said.text) turn.answer = turn.answer ? `${turn.answer}\n\n${said.text}` : said.text;
    turn.tools.push(...said.tools);
    turn.edits.push(...said.edits);
  }
  return turns;
}

interface Spoken {
  role: 'user' | 'other';
  text: string;
  tools: string[];
  edits: BranchEdit[];
}

function spoken(line: Record<string, unknown>): Spoken | undefined {
  const plain = (words: unknown): Spoken => ({ role: 'other', text: text(words), tools: [], edits: [] });
  switch (line['type']) {
    case 'branch_summary':
    case 'compaction':
      return plain(line['summary']);
    case 'custom_message':
      return plain(contentText(line['content']));
    case 'message': {
      const message = object(line['message']);
      const role = message?.['role'];
      if (role === 'user') return { ...plain(contentText(message?.['content'])), role: 'user' };
      if (role !== 'assistant') return undefined;
      const calls = objects(message?.['content']).filter((block) => block['type'] === 'toolCall');
      const tools = calls.map((call) => text(call['name']));
      return { ...plain(contentText(message?.['content'])), tools, edits: editsIn(line) };
    }
    default:
      return undefined;
  }
}

function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  return objects(content)
    .flatMap((block) => (block['type'] === 'text' ? [text(block['text'])] : []))
    .join('\n\n');
}

/** The changed files of a message's tool calls, which are in Grove's own parts of the entry. */
function editsIn(line: Record<string, unknown>): BranchEdit[] {
  return objects(object(line['grove'])?.['parts']).flatMap((part) => {
    const completed = object(object(object(part['toolCall'])?.['status'])?.['completed']);
    if (!completed || completed['success'] !== true) return [];
    return objects(completed['attached']).flatMap((attached) => {
      const edit = object(attached['edit']);
      if (!edit || typeof edit['path'] !== 'string') return [];
      const { added, removed } = edit;
      const after = object(edit['after'])?.['id'];
      return [
        {
          path: edit['path'],
          after: typeof after === 'string' ? after : undefined,
          added: typeof added === 'number' ? added : 0,
          removed: typeof removed === 'number' ? removed : 0,
        },
      ];
    });
  });
}

/** The changed files of a branch, each once with its last content. */
export function filesOf(turns: readonly BranchTurn[]): BranchEdit[] {
  const files = new Map<string, BranchEdit>();
  for (const edit of turns.flatMap((turn) => turn.edits)) {
    const known = files.get(edit.path);
    files.set(edit.path, {
      ...edit,
      added: edit.added + (known?.added ?? 0),
      removed: edit.removed + (known?.removed ?? 0),
    });
  }
  return [...files.values()];
}

export function matchOf(edit: BranchEdit, others: readonly BranchEdit[]): EditMatch {
  const other = others.find(({ path }) => path === edit.path);
  if (!other) return 'only';
  return other.after === edit.after ? 'same' : 'different';
}
