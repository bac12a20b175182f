/** The differences between two texts, line by line. */

export type LineKind = 'same' | 'added' | 'removed';

export interface Line {
  kind: LineKind;
  text: string;
  /** The line numbers in the old and in the new text, from 1. */
  before?: number;
  after?: number;
}

/** Changed lines with a few lines around them, and the number of omitted lines before them. */
export interface Hunk {
  skipped: number;
  lines: Line[];
}

/** The limits of a comparison, which would take too long and be unreadable. */
export const MOST_LINES = 2_000;
export const MOST_CHARACTERS = 256 * 1024;

/** The number of unchanged lines on either side of a change. */
const AROUND = 3;

/** The difference of two texts; undefined if they are too long. */
export function diff(before: string, after: string): Line[] | undefined {
  if (before.length > MOST_CHARACTERS || after.length > MOST_CHARACTERS) return undefined;
  const old = lines(before);
  const now = lines(after);
  if (old.length > MOST_LINES || now.length > MOST_LINES) return undefined;
  return compare(old, now);
}

/** The changes with the lines around them. `rest` is the number of omitted lines after the last one. */
export function hunks(all: Line[]): { hunks: Hunk[]; rest: number } {
  const found: Hunk[] = [];
  let written = 0;
  for (let at = 0; at < all.length; at++) {
    if (all[at]!.kind === 'same') continue;
    const from = Math.max(written, at - AROUND);
    let end = at + 1;
    // Changes whose surrounding lines touch are one hunk.
    for (let next = end; next < all.length && next < end + 2 * AROUND + 1; next++) {
      if (all[next]!.kind !== 'same') end = next + 1;
    }
    const to = Math.min(all.length, end + AROUND);
    found.push({ skipped: from - written, lines: all.slice(from, to) });
    written = to;
    at = to - 1;
  }
  return { hunks: found, rest: all.length - written };
}

/** An empty text has no lines, and a newline at the end starts none. */
function lines(text: string): string[] {
  if (text === '') return [];
  return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
}

/** The longest common lines stay; among the others, removed lines come before added ones. */
function compare(old: string[], now: string[]): Line[] {
  const shorter = Math.min(old.length, now.length);
  let head = 0;
  while (head < shorter && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < shorter - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++;

  const rows = old.length - head - tail;
  const columns = now.length - head - tail;
  const width = columns + 1;
  // The number of common lines from here on. At most MOST_LINES, so two bytes are enough.
  const common = new Uint16Array((rows + 1) * width);
  for (let row = rows - 1; row >= 0; row--) {
    for (let column = columns - 1; column >= 0; column--) {
      const at = row * width + column;
      common[at] =
        old[head + row] === now[head + column]
          ? common[at + width + 1]! + 1
          : Math.max(common[at + width]!, common[at + 1]!);
    }
  }

  const result: Line[] = [];
  const same = (a: number, b: number): void => {
    result.push({ kind: 'same', text: now[b]!, before: a + 1, after: b + 1 });
  };
  for (let at = 0; at < head; at++) same(at, at);
  let row = 0;
  let column = 0;
  while (row < rows || column < columns) {
    const at = row * width + column;
    if (row < rows && column < columns && old[head + row] === now[head + column]) {
      same(head + row++, head + column++);
    } else if (row < rows && (column >= columns || common[at + width]! >= common[at + 1]!)) {
      result.push({ kind: 'removed', text: old[head + row]!, before: head + ++row });
    } else {
      result.push({ kind: 'added', text: now[head + column]!, after: head + ++column });
    }
  }
  for (let at = tail; at > 0; at--) same(old.length - at, now.length - at);
  return result;
}
