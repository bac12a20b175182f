/** The files that the turns of a chat changed, from the `fileEdit` contents of their tool calls. */

import type { Uri } from '../wire/protocol';
import type { ActiveTurn, FileEdit, FileEditSide, Turn } from '../wire/types';

/** An edit, with the turn in which it happened. */
export interface TurnEdit {
  turn: string;
  edit: FileEdit;
}

/**
 * A file before and after edits that follow each other without a gap. If the text before an edit is not the text after
 * the one before it, somebody else changed the file meanwhile, and a new span begins.
 */
export interface FileSpan {
  before: FileEditSide | undefined;
  after: FileEditSide | undefined;
  /** Of all edits together: a line that was changed twice counts twice. */
  added: number;
  removed: number;
  edits: number;
}

export type FileChangeKind = 'new' | 'deleted' | 'moved' | 'changed';

/** All changes of one file. */
export interface FileChange {
  /** The name at the end; of a deleted file, its last one. */
  uri: Uri;
  /** The name at first, of a file that was moved. */
  movedFrom: Uri | undefined;
  kind: FileChangeKind;
  spans: FileSpan[];
  added: number;
  removed: number;
  /** The turns that changed it, in their order. */
  turns: string[];
}

/** The edits of turns, in their order. Calls that failed, or that wait for a permission, changed nothing. */
export function editsOf(turns: readonly (Turn | ActiveTurn)[]): TurnEdit[] {
  return turns.flatMap(({ id, responseParts }) =>
    responseParts.flatMap((part) => {
      if (part.kind !== 'toolCall') return [];
      const call = part.toolCall;
      if (call.status !== 'completed' && call.status !== 'pending-result-confirmation') return [];
      if (!call.success) return [];
      return (call.content ?? []).flatMap((item) => (item.type === 'fileEdit' ? [{ turn: id, edit: item }] : []));
    }),
  );
}

interface OpenFile {
  first: Uri;
  last: Uri;
  spans: FileSpan[];
  turns: string[];
}

/** The edits of each file together, in the order of the first edit. A file that is as it was is left out. */
export function combine(edits: readonly TurnEdit[]): FileChange[] {
  const files: OpenFile[] = [];
  const byName = new Map<Uri, OpenFile>();
  for (const { turn, edit } of edits) {
    const from = edit.before?.uri ?? edit.after?.uri;
    const to = edit.after?.uri ?? edit.before?.uri;
    if (from === undefined || to === undefined) continue;
    let file = byName.get(from);
    if (!file) {
      file = { first: from, last: from, spans: [], turns: [] };
      files.push(file);
    }
    extend(file, edit);
    if (file.turns.at(-1) !== turn) file.turns.push(turn);
    byName.delete(from);
    file.last = to;
    byName.set(to, file);
  }
  return files.flatMap(closed);
}

function extend({ spans }: OpenFile, { before, after, diff }: FileEdit): void {
  const added = diff?.added ?? 0;
  const removed = diff?.removed ?? 0;
  const last = spans.at(-1);
  // An agent that writes a whole file may not say what was there before.
  const follows = last && (before === undefined || before.content.uri === last.after?.content.uri);
  if (!follows) spans.push({ before, after, added, removed, edits: 1 });
  else {
    last.after = after;
    last.added += added;
    last.removed += removed;
    last.edits += 1;
  }
}

function closed({ first, last, spans: all, turns }: OpenFile): FileChange[] {
  const start = all[0]?.before;
  const end = all.at(-1)?.after;
  // Of a file that is gone, only what was there at first matters.
  const spans = (end === undefined ? [joined(all)] : all).filter((span) => !isEmpty(span));
  const isMoved = first !== last && start !== undefined && end !== undefined;
  if (spans.length === 0 && !isMoved) return [];
  const sum = (of: (span: FileSpan) => number): number => spans.reduce((total, span) => total + of(span), 0);
  const kind = end === undefined ? 'deleted' : start === undefined ? 'new' : isMoved ? 'moved' : 'changed';
  const movedFrom = isMoved ? first : undefined;
  return [
    {
      uri: last,
      movedFrom,
      kind,
      spans,
      added: sum((span) => span.added),
      removed: sum((span) => span.removed),
      turns,
    },
  ];
}

function joined(spans: FileSpan[]): FileSpan {
  const sum = (of: (span: FileSpan) => number): number => spans.reduce((total, span) => total + of(span), 0);
  return {
    before: spans[0]?.before,
    after: spans.at(-1)?.after,
    added: sum((span) => span.added),
    removed: sum((span) => span.removed),
    edits: sum((span) => span.edits),
  };
}

function isEmpty({ before, after }: FileSpan): boolean {
  return before?.content.uri === after?.content.uri;
}

/** The sizes of all changes together. */
export function total(files: readonly FileChange[]): { files: number; added: number; removed: number } {
  const sum = (of: (file: FileChange) => number): number => files.reduce((all, file) => all + of(file), 0);
  return { files: files.length, added: sum((file) => file.added), removed: sum((file) => file.removed) };
}
