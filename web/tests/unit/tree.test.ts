import { describe, expect, it } from 'vitest';
import {
  abandons,
  branchCount,
  headOf,
  isPrompt,
  linked,
  nextHead,
  pageOf,
  type TreeRow,
  visibleRows,
} from '../../src/state/tree';
import { random } from './support';

const row = (id: string, parent: string | undefined, depth: number, more: Partial<TreeRow> = {}): TreeRow => ({
  id,
  parent,
  depth,
  indent: 0,
  kind: 'message',
  role: 'user',
  text: id,
  label: undefined,
  time: undefined,
  isActive: false,
  isLeaf: false,
  siblings: 1,
  ...more,
});

/**
 *     a ─ b ─┬─ c ─ d
 *            └─ e ─┬─ f
 *                  └─ g
 */
const rows = linked([
  row('a', undefined, 0),
  row('b', 'a', 1),
  row('c', 'b', 2),
  row('d', 'c', 3, { isLeaf: true }),
  row('e', 'b', 2),
  row('f', 'e', 3),
  row('g', 'e', 3),
]);
const ids = (folded: string[]): string[] => visibleRows(rows, new Set(folded)).map(({ row }) => row.id);

describe('a page of rows', () => {
  it('is read as the host sends it, and what has another shape is left out', () => {
    const sent = { id: 'x', parent: null, depth: 1, indent: 2, kind: 'message', role: 'user', text: 'Hi', time: 5 };
    const page = pageOf({
      rows: [{ ...sent, label: 'L', active: true, leaf: true }, { id: 7 }, null],
      total: 3,
      nextCursor: 'n',
    });
    expect(page).toEqual({
      rows: [row('x', undefined, 1, { text: 'Hi', label: 'L', time: 5, isActive: true, isLeaf: true })],
      total: 3,
      next: 'n',
    });
    expect(pageOf(undefined)).toEqual({ rows: [], total: 0, next: undefined });
    expect(pageOf({ rows: 'no', total: 'no', nextCursor: null })).toEqual({ rows: [], total: 0, next: undefined });
  });
});

describe('branches', () => {
  it('begin where a row has siblings', () => {
    expect(visibleRows(rows, new Set()).flatMap(({ row, isHead }) => (isHead ? [row.id] : []))).toEqual([
      'c',
      'e',
      'f',
      'g',
    ]);
    expect(branchCount(rows)).toBe(3);
    expect(['a', 'd', 'e', 'g'].map((id) => headOf(rows, id)?.id)).toEqual([undefined, 'c', 'e', 'g']);
  });

  it('are drawn beside the active one, which is straight', () => {
    const active = new Set(['a', 'b', 'c', 'd']);
    const drawn = linked(rows.map((row) => ({ ...row, isActive: active.has(row.id) })));
    expect(drawn.map(({ id, indent }) => `${id}${indent}`)).toEqual(['a0', 'b0', 'c0', 'd0', 'e1', 'f2', 'g2']);
  });

  it('are folded with everything below, also what is folded in there', () => {
    expect(ids(['e'])).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(ids(['c', 'g'])).toEqual(['a', 'b', 'c', 'e', 'f', 'g']);
    expect(ids(['a', 'c'])).toEqual(['a']);
    expect(visibleRows(rows, new Set(['b']))[1]).toMatchObject({ isFolded: true, hidden: 5 });
    expect(visibleRows(rows, new Set(['d']))[3]).toMatchObject({ isFolded: false, hidden: 0 });
  });

  it('are found from any row, in both directions', () => {
    const shown = visibleRows(rows, new Set());
    expect([nextHead(shown, 0, 1), nextHead(shown, 2, 1), nextHead(shown, 6, 1)]).toEqual([2, 4, undefined]);
    expect([nextHead(shown, 6, -1), nextHead(shown, 2, -1)]).toEqual([5, undefined]);
  });

  it('hide each row once, however they are folded', () => {
    const below = random(7);
    for (let round = 0; round < 200; round++) {
      const path: string[] = [];
      const all: TreeRow[] = [];
      for (let n = 0; n < below(40); n++) {
        path.length = below(path.length + 1);
        all.push(row(`${n}`, path.at(-1), path.length));
        path.push(`${n}`);
      }
      const folded = new Set(all.filter(() => below(3) === 0).map(({ id }) => id));
      const shown = visibleRows(linked(all), folded);
      expect(shown.reduce((sum, { hidden }) => sum + 1 + hidden, 0)).toBe(all.length);
      const parents = new Map(all.map(({ id, parent }) => [id, parent]));
      const isHidden = (id: string): boolean => {
        for (let up = parents.get(id); up !== undefined; up = parents.get(up)) if (folded.has(up)) return true;
        return false;
      };
      expect(shown.map(({ row }) => row.id)).toEqual(all.filter(({ id }) => !isHidden(id)).map(({ id }) => id));
    }
  });
});

describe('a row', () => {
  it('is gone to with something left behind, unless it is the leaf', () => {
    expect([abandons(rows, 'a'), abandons(rows, 'd'), abandons([], 'a')]).toEqual([true, false, false]);
  });

  it('is a prompt if the user said it', () => {
    expect(
      [
        row('a', undefined, 0),
        row('a', undefined, 0, { role: 'assistant' }),
        row('a', undefined, 0, { kind: 'custom' }),
      ].map(isPrompt),
    ).toEqual([true, false, false]);
  });
});
