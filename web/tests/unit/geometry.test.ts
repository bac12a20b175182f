import { describe, expect, it } from 'vitest';
import { Geometry, type Row } from '../../src/state/geometry';
import { randomizer } from './random';

const set = (geometry: Geometry, rows: Row[]): void => geometry.setRows(rows.length, (index) => rows[index]!);
const rows = (...heights: number[]): Row[] => heights.map((estimate, n) => ({ id: `r${n}`, estimate }));

describe('a long list', () => {
  it('without rows draws nothing', () => {
    expect(new Geometry().drawn(0, 1_000)).toEqual({ from: 0, to: 0, before: 0, after: 0 });
  });

  it('draws the rows that touch the view', () => {
    const geometry = new Geometry();
    set(geometry, rows(10, 20, 30, 40));
    expect(geometry.drawn(10, 59)).toEqual({ from: 1, to: 3, before: 10, after: 40 });
    expect(geometry.drawn(-50, 5)).toEqual({ from: 0, to: 1, before: 0, after: 90 });
    expect(geometry.drawn(500, 900)).toEqual({ from: 3, to: 4, before: 60, after: 0 });
  });

  it('keeps measured heights when rows are added on both sides', () => {
    const geometry = new Geometry();
    set(geometry, rows(10, 10));
    expect([geometry.measure('r1', 33), geometry.measure('r1', 33.2), geometry.measure('other', 1)]).toEqual([
      true,
      false,
      false,
    ]);
    set(geometry, [{ id: 'older', estimate: 7 }, ...rows(10, 10, 5)]);
    expect([geometry.topOf(2), geometry.topOf(3), geometry.total]).toEqual([17, 50, 55]);
    expect([geometry.indexOf('r1'), geometry.indexOf('gone')]).toEqual([2, undefined]);
  });

  it('always agrees with the plain sums, whatever is added, removed and measured', () => {
    const random = randomizer(5);
    for (let round = 0; round < 60; round++) {
      const geometry = new Geometry();
      const measured = new Map<string, number>();
      let list: Row[] = [];
      let next = 0;
      for (let step = 0; step < 40; step++) {
        const added = Array.from({ length: random(5) }, () => ({ id: `r${next++}`, estimate: 1 + random(300) }));
        const kind = random(4);
        if (kind === 0) list = [...added, ...list];
        if (kind === 1) list = [...list, ...added];
        if (kind === 2 && random(4) === 0) list = list.slice(0, random(list.length + 1));
        set(geometry, list);
        if (kind === 3 && list.length > 0) {
          const { id } = list[random(list.length)]!;
          const height = 1 + random(300);
          measured.set(id, height);
          geometry.measure(id, height);
        }
        const heights = list.map(({ id, estimate }) => measured.get(id) ?? estimate);
        const total = heights.reduce((sum, height) => sum + height, 0);
        expect(geometry.total).toBe(total);
        const top = random(total + 200) - 100;
        const bottom = top + random(800);
        const { from, to, before, after } = geometry.drawn(top, bottom);
        const sum = (start: number, end: number): number => heights.slice(start, end).reduce((a, b) => a + b, 0);
        expect([before, after]).toEqual([sum(0, from), sum(to, heights.length)]);
        // Every row that the view touches is drawn.
        let place = 0;
        heights.forEach((height, index) => {
          if (place < bottom && place + height > top && bottom > top) {
            expect(index >= from && index < to, `row ${index} in ${from}–${to}`).toBe(true);
          }
          place += height;
        });
        // And few others are.
        if (to - from > 2) expect(sum(from + 1, to - 1)).toBeLessThanOrEqual(bottom - top);
      }
    }
  });

  it('of 10,000 rows costs little for each scrolled step and each measured row', () => {
    const geometry = new Geometry();
    const list = Array.from({ length: 10_000 }, (_, n) => ({ id: `r${n}`, estimate: 100 }));
    set(geometry, list);
    const begun = performance.now();
    for (let step = 0; step < 1_000; step++) {
      const { from } = geometry.drawn(step * 900, step * 900 + 800);
      geometry.measure(`r${from}`, 130);
    }
    // A thousand steps in the time of ten frames would be 0.16 ms each; the bound leaves room for a slow machine.
    expect(performance.now() - begun).toBeLessThan(2_000);
  });
});
