/** The differences between two texts, line by line, and the folding of unchanged lines. */

export type LineKind = 'same' | 'added' | 'removed';

export interface Line {
  kind: LineKind;
  text: string;
  /** The line numbers in the old and in the new text, from 1. */
  before?: number;
  after?: number;
}

/** Lines from one index up to another, which is not included. */
export interface Range {
  from: number;
  to: number;
}

/** Lines of a diff that are shown, or a gap: unchanged lines that are left out. */
export interface Piece extends Range {
  kind: 'lines' | 'gap';
}

/** The limits of a comparison: larger files would be unreadable. */
export const MOST_LINES = 20_000;
export const MOST_CHARACTERS = 1024 * 1024;

/** The number of unchanged lines on either side of a change. */
const AROUND = 3;

/** The largest table of common lines. Longer parts are split at lines that occur once in both texts. */
const MOST_CELLS = 4_000_000;

/** How often a part is split again. */
const MOST_SPLITS = 24;

/** The difference of two texts; undefined if they are too long. */
export function diff(before: string, after: string): Line[] | undefined {
  if (before.length > MOST_CHARACTERS || after.length > MOST_CHARACTERS) return undefined;
  const old = linesOf(before);
  const now = linesOf(after);
  if (old.length > MOST_LINES || now.length > MOST_LINES) return undefined;
  return compare(old, now).map(({ kind, before, after }) => {
    const text = after === undefined ? old[before!]! : now[after]!;
    return {
      kind,
      text,
      ...(before === undefined ? {} : { before: before + 1 }),
      ...(after === undefined ? {} : { after: after + 1 }),
    };
  });
}

/** An empty text has no lines, and a newline at the end starts none. */
export function linesOf(text: string): string[] {
  if (text === '') return [];
  return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
}

/** The numbers of added and removed lines. */
export function count(lines: readonly Line[]): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const { kind } of lines) {
    if (kind === 'added') added++;
    else if (kind === 'removed') removed++;
  }
  return { added, removed };
}

/** Leaves out unchanged lines, except those near a change and those of `opened`. A gap has at least two lines. */
export function fold(lines: readonly Line[], opened: readonly Range[] = []): Piece[] {
  const shown = new Uint8Array(lines.length);
  const show = (from: number, to: number): void => void shown.fill(1, Math.max(0, from), Math.min(lines.length, to));
  lines.forEach((line, at) => {
    if (line.kind !== 'same') show(at - AROUND, at + AROUND + 1);
  });
  for (const { from, to } of opened) show(from, to);
  const pieces: Piece[] = [];
  for (let from = 0; from < lines.length;) {
    let to = from + 1;
    while (to < lines.length && shown[to] === shown[from]) to++;
    const kind = shown[from] || to - from < 2 ? 'lines' : 'gap';
    const last = pieces.at(-1);
    if (last && kind === 'lines' && last.kind === 'lines') last.to = to;
    else pieces.push({ kind, from, to });
    from = to;
  }
  return pieces;
}

/** A row of a diff in two columns: an old line, a new line, or both. Indexes of lines. */
export interface SideBySide {
  left?: number;
  right?: number;
}

/** Puts removed lines beside the added ones that replace them. */
export function sideBySide(lines: readonly Line[], { from, to }: Range): SideBySide[] {
  const rows: SideBySide[] = [];
  for (let at = from; at < to;) {
    if (lines[at]!.kind === 'same') {
      rows.push({ left: at, right: at });
      at++;
      continue;
    }
    const removed: number[] = [];
    const added: number[] = [];
    for (; at < to && lines[at]!.kind !== 'same'; at++) (lines[at]!.kind === 'removed' ? removed : added).push(at);
    for (let n = 0; n < Math.max(removed.length, added.length); n++) {
      rows.push({
        ...(n < removed.length ? { left: removed[n]! } : {}),
        ...(n < added.length ? { right: added[n]! } : {}),
      });
    }
  }
  return rows;
}

/** A step of a comparison, with the indexes of its item in the old and in the new list. */
export interface Step {
  kind: LineKind;
  before?: number;
  after?: number;
}

/** The longest common items stay; among the others, removed ones come before added ones. */
export function compare(old: readonly string[], now: readonly string[]): Step[] {
  const numbers = new Map<string, number>();
  const number = (text: string): number => {
    let known = numbers.get(text);
    if (known === undefined) numbers.set(text, (known = numbers.size));
    return known;
  };
  const a = Uint32Array.from(old, number);
  const b = Uint32Array.from(now, number);
  const steps: Step[] = [];
  section(a, b, { from: 0, to: a.length }, { from: 0, to: b.length }, MOST_SPLITS, steps);
  return steps;
}

function section(a: Uint32Array, b: Uint32Array, old: Range, now: Range, splits: number, steps: Step[]): void {
  let { from: row, to: rowEnd } = old;
  let { from: column, to: columnEnd } = now;
  while (row < rowEnd && column < columnEnd && a[row] === b[column]) {
    steps.push({ kind: 'same', before: row++, after: column++ });
  }
  let tail = 0;
  while (row < rowEnd && column < columnEnd && a[rowEnd - 1] === b[columnEnd - 1]) {
    rowEnd--;
    columnEnd--;
    tail++;
  }
  const rows = { from: row, to: rowEnd };
  const columns = { from: column, to: columnEnd };
  if ((rowEnd - row) * (columnEnd - column) <= MOST_CELLS) {
    fewest(a, b, rows, columns, steps);
  } else {
    const anchors = splits > 0 ? anchorsOf(a, b, rows, columns) : [];
    for (const anchor of anchors) {
      section(a, b, { from: row, to: anchor.row }, { from: column, to: anchor.column }, splits - 1, steps);
      steps.push({ kind: 'same', before: anchor.row, after: anchor.column });
      row = anchor.row + 1;
      column = anchor.column + 1;
    }
    const [rest, others] = [
      { from: row, to: rowEnd },
      { from: column, to: columnEnd },
    ];
    if (anchors.length > 0) section(a, b, rest, others, splits - 1, steps);
    else replaced(rest, others, steps);
  }
  for (let n = 0; n < tail; n++) steps.push({ kind: 'same', before: rowEnd + n, after: columnEnd + n });
}

function replaced(old: Range, now: Range, steps: Step[]): void {
  for (let at = old.from; at < old.to; at++) steps.push({ kind: 'removed', before: at });
  for (let at = now.from; at < now.to; at++) steps.push({ kind: 'added', after: at });
}

function fewest(a: Uint32Array, b: Uint32Array, old: Range, now: Range, steps: Step[]): void {
  const rows = old.to - old.from;
  const columns = now.to - now.from;
  if (rows === 0 || columns === 0) return replaced(old, now, steps);
  const width = columns + 1;
  // The number of common lines from here on. At most MOST_LINES, so two bytes are enough.
  const common = new Uint16Array((rows + 1) * width);
  for (let row = rows - 1; row >= 0; row--) {
    for (let column = columns - 1; column >= 0; column--) {
      const at = row * width + column;
      common[at] =
        a[old.from + row] === b[now.from + column]
          ? common[at + width + 1]! + 1
          : Math.max(common[at + width]!, common[at + 1]!);
    }
  }
  let row = 0;
  let column = 0;
  while (row < rows || column < columns) {
    const at = row * width + column;
    const before = old.from + row;
    const after = now.from + column;
    if (row < rows && column < columns && a[before] === b[after]) {
      steps.push({ kind: 'same', before, after });
      row++;
      column++;
    } else if (row < rows && (column >= columns || common[at + width]! >= common[at + 1]!)) {
      steps.push({ kind: 'removed', before });
      row++;
    } else {
      steps.push({ kind: 'added', after });
      column++;
    }
  }
}

interface Anchor {
  row: number;
  column: number;
}

/** Items that occur once in both ranges: the longest sequence of them that is in order in both. */
function anchorsOf(a: Uint32Array, b: Uint32Array, old: Range, now: Range): Anchor[] {
  const TWICE = -1;
  const places = (all: Uint32Array, { from, to }: Range): Map<number, number> => {
    const found = new Map<number, number>();
    for (let at = from; at < to; at++) found.set(all[at]!, found.has(all[at]!) ? TWICE : at);
    return found;
  };
  const right = places(b, now);
  const candidates: Anchor[] = [];
  for (const [item, row] of places(a, old)) {
    const column = right.get(item) ?? TWICE;
    if (row !== TWICE && column !== TWICE) candidates.push({ row, column });
  }
  candidates.sort((x, y) => x.row - y.row);
  return increasing(candidates);
}

/** The longest subsequence with growing columns (patience sorting). */
function increasing(all: Anchor[]): Anchor[] {
  const ends: number[] = [];
  const before = new Int32Array(all.length).fill(-1);
  all.forEach(({ column }, at) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (all[ends[middle]!]!.column < column) low = middle + 1;
      else high = middle;
    }
    if (low > 0) before[at] = ends[low - 1]!;
    ends[low] = at;
  });
  const found: Anchor[] = [];
  for (let at = ends.at(-1) ?? -1; at >= 0; at = before[at]!) found.push(all[at]!);
  return found.reverse();
}
