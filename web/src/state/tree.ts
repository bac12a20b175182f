/** The rows of a session's tree: reading them, folding branches, finding branch points. */

import { object, objects, text } from './meta';

export const TREE_FILTERS = ['default', 'no-tools', 'user-only', 'labeled-only', 'all'] as const;
export type TreeFilter = (typeof TREE_FILTERS)[number];

/** An entry as the host lists it: depth first, the active branch first. */
export interface TreeRow {
  id: string;
  /** The nearest shown entry above. */
  parent: string | undefined;
  /** The number of shown entries above. */
  depth: number;
  kind: string;
  role: string;
  text: string;
  label: string | undefined;
  /** Milliseconds since 1970. */
  time: number | undefined;
  isActive: boolean;
  isLeaf: boolean;
  /** Rows with the same parent, this one included. */
  siblings: number;
  /** The number of forks between the row and the active branch, which is drawn as a straight line. */
  indent: number;
}

/** A row that is drawn. */
export interface ShownRow {
  row: TreeRow;
  /** The row begins a branch, or is the first of several roots. */
  isHead: boolean;
  isFolded: boolean;
  /** The number of rows that are folded below it. */
  hidden: number;
}

export interface TreePage {
  rows: TreeRow[];
  total: number;
  next: string | undefined;
}

/** A page as the host sent it. Rows of another shape are left out. */
export function pageOf(result: unknown): TreePage {
  const { rows, total, nextCursor } = object(result) ?? {};
  return {
    rows: objects(rows).flatMap(rowOf),
    total: typeof total === 'number' ? total : 0,
    next: typeof nextCursor === 'string' ? nextCursor : undefined,
  };
}

function rowOf(row: Record<string, unknown>): TreeRow[] {
  const { id, parent, depth, kind, role, label, time } = row;
  if (typeof id !== 'string') return [];
  return [
    {
      id,
      parent: typeof parent === 'string' ? parent : undefined,
      depth: typeof depth === 'number' ? depth : 0,
      kind: text(kind),
      role: text(role),
      text: text(row['text']),
      label: typeof label === 'string' && label ? label : undefined,
      time: typeof time === 'number' ? time : undefined,
      isActive: row['active'] === true,
      isLeaf: row['leaf'] === true,
      siblings: 1,
      indent: 0,
    },
  ];
}

/** The rows with what follows from all of them together. A row stands before those below it. */
export function linked(rows: readonly TreeRow[]): TreeRow[] {
  const children = new Map<string | undefined, number>();
  for (const { parent } of rows) children.set(parent, (children.get(parent) ?? 0) + 1);
  const indents = new Map<string | undefined, number>();
  return rows.map((row) => {
    const siblings = children.get(row.parent) ?? 1;
    const indent = row.isActive ? 0 : (indents.get(row.parent) ?? 0) + (siblings > 1 ? 1 : 0);
    indents.set(row.id, indent);
    return siblings === row.siblings && indent === row.indent ? row : { ...row, siblings, indent };
  });
}

/** True for the first row of a branch. */
export function isHead(row: TreeRow): boolean {
  return row.siblings > 1;
}

/** The rows without those below folded ones. */
export function visibleRows(rows: readonly TreeRow[], folded: ReadonlySet<string>): ShownRow[] {
  const shown: ShownRow[] = [];
  for (let at = 0; at < rows.length;) {
    const row = rows[at]!;
    const end = folded.has(row.id) ? endOfBranch(rows, at) : at + 1;
    const hidden = end - at - 1;
    shown.push({ row, isHead: isHead(row), isFolded: hidden > 0, hidden });
    at = end;
  }
  return shown;
}

/** The index after the last row below a row. */
function endOfBranch(rows: readonly TreeRow[], at: number): number {
  const { depth } = rows[at]!;
  let end = at + 1;
  while (end < rows.length && rows[end]!.depth > depth) end++;
  return end;
}

/** The first row of the branch that a row is on; undefined without branches. */
export function headOf(rows: readonly TreeRow[], id: string): TreeRow | undefined {
  const byId = new Map(rows.map((row) => [row.id, row]));
  let row = byId.get(id);
  while (row && !isHead(row)) row = row.parent === undefined ? undefined : byId.get(row.parent);
  return row;
}

/** The number of branches: rows without rows below. */
export function branchCount(rows: readonly TreeRow[]): number {
  const parents = new Set(rows.map((row) => row.parent));
  return rows.filter((row) => !parents.has(row.id)).length;
}

/** The next row, before or after an index, that begins a branch. */
export function nextHead(rows: readonly ShownRow[], from: number, step: 1 | -1): number | undefined {
  for (let at = from + step; at >= 0 && at < rows.length; at += step) {
    if (rows[at]!.isHead) return at;
  }
  return undefined;
}

/** Whether going to a row leaves something behind that could be summarized. */
export function abandons(rows: readonly TreeRow[], id: string): boolean {
  return rows.some((row) => row.isLeaf && row.id !== id);
}

/** Whether an entry is a message of the user: going there moves before it and returns its text. */
export function isPrompt({ kind, role }: TreeRow): boolean {
  return kind === 'message' && role === 'user';
}
