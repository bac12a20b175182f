/** The branches of a chat's tree of entries, as its turns need them. */

/** A row of `x-grove/tree`, as far as branches need it. */
export interface BranchRow {
  id: string;
  parent: string | null;
  depth: number;
  role: string;
  time: number;
  active: boolean;
  hasChildren: boolean;
  /** The turn that a user message begins. */
  turn?: string;
}

/** The alternatives to a message: the messages at the same place of the conversation, the first one first. */
export interface Alternatives {
  /** The entry of each. */
  entries: readonly string[];
  /** The position of the one on the current branch. */
  at: number;
}

/** The current branch, by the ids of its turns. */
export interface Branches {
  /** The entry of each turn's message. */
  entries: ReadonlyMap<string, string>;
  /** Turns whose message has alternatives. */
  alternatives: ReadonlyMap<string, Alternatives>;
}

export const NO_BRANCHES: Branches = { entries: new Map(), alternatives: new Map() };

/** The rows of an answer. Malformed ones are left out. */
export function rowsOf(value: unknown): BranchRow[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((row: Record<string, unknown> | null) => {
    if (row === null || typeof row !== 'object' || typeof row['id'] !== 'string') return [];
    return [
      {
        id: row['id'],
        parent: typeof row['parent'] === 'string' ? row['parent'] : null,
        depth: typeof row['depth'] === 'number' ? row['depth'] : 0,
        role: typeof row['role'] === 'string' ? row['role'] : '',
        time: typeof row['time'] === 'number' ? row['time'] : 0,
        active: row['active'] === true,
        hasChildren: row['hasChildren'] === true,
        ...(typeof row['turn'] === 'string' ? { turn: row['turn'] } : {}),
      },
    ];
  });
}

/** The branches of rows that are user messages alone. */
export function branchesOf(rows: readonly BranchRow[]): Branches {
  const siblings = new Map<string | null, BranchRow[]>();
  for (const row of rows) {
    if (row.role !== 'user') continue;
    const known = siblings.get(row.parent);
    if (known) known.push(row);
    else siblings.set(row.parent, [row]);
  }
  const entries = new Map<string, string>();
  const alternatives = new Map<string, Alternatives>();
  for (const group of siblings.values()) {
    // The rows begin with the active branch, so only their times tell the order.
    const ordered = group.toSorted((a, b) => a.time - b.time || (a.id < b.id ? -1 : 1));
    const at = ordered.findIndex((row) => row.active);
    const turn = ordered[at]?.turn;
    if (turn === undefined) continue;
    entries.set(turn, ordered[at]!.id);
    if (ordered.length > 1) alternatives.set(turn, { entries: ordered.map((row) => row.id), at });
  }
  return { entries, alternatives };
}

/** The newest end of the branches below an entry, which may be the entry itself. `rows` are in the order of the tree. */
export function newestLeaf(rows: readonly BranchRow[], entry: string): string | undefined {
  const top = rows.findIndex((row) => row.id === entry);
  if (top < 0) return undefined;
  const depth = rows[top]!.depth;
  let end = top + 1;
  while (end < rows.length && rows[end]!.depth > depth) end++;
  const ends = rows.slice(top, end).filter((row) => !row.hasChildren);
  return ends.reduce<BranchRow | undefined>((best, row) => (best && best.time > row.time ? best : row), undefined)?.id;
}
