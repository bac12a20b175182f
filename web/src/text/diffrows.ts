/** The rows of a diff as they are drawn, and the lines that a selection of rows is about. */

import { fold, type Line, type Range, sideBySide } from './diff';
import type { DiffSide } from './linecomments';

export type DiffRow =
  | { kind: 'gap'; from: number; to: number }
  /** A line in one column: the index of the line. */
  | { kind: 'line'; at: number }
  /** A line in two columns: the indexes of an old line, a new line, or both. */
  | { kind: 'pair'; left: number | undefined; right: number | undefined };

/** The unchanged lines that are shown with one step. */
export const STEP = 20;

export function rowsOf(lines: readonly Line[], opened: readonly Range[], isSplit: boolean): DiffRow[] {
  return fold(lines, opened).flatMap((piece): DiffRow[] => {
    if (piece.kind === 'gap') return [{ kind: 'gap', from: piece.from, to: piece.to }];
    if (isSplit) return sideBySide(lines, piece).map(({ left, right }) => ({ kind: 'pair', left, right }));
    return Array.from({ length: piece.to - piece.from }, (_, n) => ({ kind: 'line', at: piece.from + n }));
  });
}

/** The part of a gap that a step opens: above or below, or all of it. */
export function openedPart({ from, to }: Range, where: 'above' | 'below' | 'all'): Range {
  switch (where) {
    case 'above':
      return { from, to: Math.min(to, from + STEP) };
    case 'below':
      return { from: Math.max(from, to - STEP), to };
    case 'all':
      return { from, to };
  }
}

/** The side on which a line is commented: an unchanged line belongs to the new text. */
export function sideOf(line: Line): DiffSide {
  return line.kind === 'removed' ? 'before' : 'after';
}

export function numberOf(line: Line, side: DiffSide): number | undefined {
  return side === 'before' ? line.before : line.after;
}

/** The lines of one side. */
export interface LineSelection {
  side: DiffSide;
  first: number;
  last: number;
  quote: string[];
}

/** The lines of one side between two lines of the diff, whichever comes first. The side is that of the first one. */
export function selection(
  lines: readonly Line[],
  side: DiffSide,
  one: number,
  other: number,
): LineSelection | undefined {
  const found = lines
    .slice(Math.min(one, other), Math.max(one, other) + 1)
    .filter((line) => numberOf(line, side) !== undefined);
  const first = found[0] && numberOf(found[0], side);
  const last = found.at(-1) && numberOf(found.at(-1)!, side);
  if (first === undefined || last === undefined) return undefined;
  return { side, first, last, quote: found.map((line) => line.text) };
}

/** The index of a line by its number on a side. */
export function indexOf(lines: readonly Line[], side: DiffSide, number: number): number {
  return lines.findIndex((line) => numberOf(line, side) === number);
}
