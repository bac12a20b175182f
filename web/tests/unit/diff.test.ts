import { describe, expect, it } from 'vitest';
import { count, diff, fold, type Line, MOST_CHARACTERS, MOST_LINES, sideBySide } from '../../src/text/diff';
import { indexOf, openedPart, rowsOf, selection } from '../../src/text/diffrows';
import { random } from './support';

const SIGNS = { same: ' ', added: '+', removed: '-' };
const written = (lines: Line[] | undefined): string[] | undefined => lines?.map((line) => SIGNS[line.kind] + line.text);
const before = (lines: Line[]): string[] => lines.filter((line) => line.kind !== 'added').map((line) => line.text);
const after = (lines: Line[]): string[] => lines.filter((line) => line.kind !== 'removed').map((line) => line.text);

describe('the lines that differ', () => {
  it.each([
    ['nothing', 'a\nb\n', 'a\nb\n', [' a', ' b']],
    ['a line that changed', 'a\nb\nc\n', 'a\nB\nc\n', [' a', '-b', '+B', ' c']],
    ['a new file', '', 'a\nb\n', ['+a', '+b']],
    ['a file that is gone', 'a\n', '', ['-a']],
    ['a line in the middle', 'a\nc', 'a\nb\nc', [' a', '+b', ' c']],
    ['a line that was doubled', 'a\na\n', 'a\na\na\n', [' a', ' a', '+a']],
    ['lines at both ends', 'b\n', 'a\nb\nc\n', ['+a', ' b', '+c']],
    ['an empty line', 'a\n', 'a\n\n', [' a', '+']],
  ])('are found: %s', (_name, old, now, expected) => expect(written(diff(old, now))).toEqual(expected));

  it('give both texts back, whatever they are, and are as few as can be', () => {
    const below = random(11);
    const text = (): string[] => Array.from({ length: below(9) }, () => 'abc'[below(3)]!);
    for (let round = 0; round < 400; round++) {
      const [old, now] = [text(), text()];
      const lines = diff(old.join('\n'), now.join('\n'))!;
      expect(before(lines)).toEqual(old);
      expect(after(lines)).toEqual(now);
      expect(lines.filter((line) => line.kind === 'same')).toHaveLength(longest(old, now));
    }
  });

  it('of long texts are found between lines that occur once', () => {
    const below = random(5);
    const old = Array.from({ length: 9_000 }, (_, n) => (below(4) === 0 ? '}' : `line ${n}`));
    const now = old.flatMap((line) => {
      const chance = below(40);
      return chance === 0 ? [] : chance === 1 ? [line, 'added'] : [line];
    });
    const lines = diff(old.join('\n'), now.join('\n'))!;
    expect(before(lines)).toEqual(old);
    expect(after(lines)).toEqual(now);
    const { added, removed } = count(lines);
    expect(added - removed).toBe(now.length - old.length);
    // About one line in forty was removed and one added; a comparison that gives up marks all of them.
    expect(added + removed).toBeLessThan(1_200);
  });

  it('know where they stand', () => {
    const lines = diff('a\nb\nc\n', 'a\nx\ny\nc\n')!;
    expect(lines.map(({ before, after }) => [before, after])).toEqual([
      [1, 1],
      [2, undefined],
      [undefined, 2],
      [undefined, 3],
      [3, 4],
    ]);
  });

  it('are not sought past the bounds', () => {
    const long = 'x\n'.repeat(MOST_LINES + 1);
    expect(diff(long, 'x\n')).toBeUndefined();
    expect(diff('x\n', long)).toBeUndefined();
    expect(diff('x'.repeat(MOST_CHARACTERS + 1), '')).toBeUndefined();
  });

  it('are found at the bounds, even where no line is common', () => {
    const old = Array.from({ length: MOST_LINES }, (_, n) => `old ${n}`).join('\n');
    const now = Array.from({ length: MOST_LINES }, (_, n) => `new ${n}`).join('\n');
    expect(diff(old, now)).toHaveLength(2 * MOST_LINES);
  });
});

describe('unchanged lines', () => {
  const numbered = (count: number): string[] => Array.from({ length: count }, (_, n) => `line ${n}`);
  const changed = (...at: number[]): Line[] =>
    diff(numbered(40).join('\n'), numbered(40).with(at[0]!, 'x').with(at.at(-1)!, 'y').join('\n'))!;
  const folded = (lines: Line[], opened = [] as { from: number; to: number }[]) =>
    fold(lines, opened).map(({ kind, from, to }) => `${kind} ${from}-${to}`);

  it('are folded, except three on either side of a change', () => {
    // Each change is two lines: the old one and the new one.
    expect(folded(changed(10, 30))).toEqual(['gap 0-7', 'lines 7-15', 'gap 15-28', 'lines 28-36', 'gap 36-42']);
  });

  it('are shown between changes that are near each other, and where a gap would be one line', () => {
    expect(folded(changed(10, 17))).toEqual(['gap 0-7', 'lines 7-23', 'gap 23-42']);
    expect(folded(changed(4, 39))[0]).toBe('lines 0-9');
  });

  it('of a text that did not change are one gap', () => {
    const same = numbered(5).join('\n');
    expect(folded(diff(same, same)!)).toEqual(['gap 0-5']);
    expect(fold([])).toEqual([]);
  });

  it('are opened in steps, from above and from below', () => {
    const lines = diff(['x', ...numbered(100)].join('\n'), numbered(100).join('\n'))!;
    const [, gap] = fold(lines);
    expect(gap).toEqual({ kind: 'gap', from: 4, to: 101 });
    expect(openedPart(gap!, 'above')).toEqual({ from: 4, to: 24 });
    expect(openedPart(gap!, 'below')).toEqual({ from: 81, to: 101 });
    expect(folded(lines, [openedPart(gap!, 'above')])).toEqual(['lines 0-24', 'gap 24-101']);
    expect(folded(lines, [openedPart(gap!, 'all')])).toEqual(['lines 0-101']);
  });

  it('and changed ones are each in one piece, whatever is opened', () => {
    const below = random(3);
    for (let round = 0; round < 300; round++) {
      const lines: Line[] = Array.from({ length: below(60) }, (_, n) => ({
        kind: below(8) === 0 ? 'added' : 'same',
        text: `${n}`,
      }));
      const opened = Array.from({ length: below(3) }, () => ({ from: below(60), to: below(70) }));
      const pieces = fold(lines, opened);
      expect(pieces.flatMap(({ from, to }) => lines.slice(from, to))).toEqual(lines);
      for (const { kind, from, to } of pieces.filter((piece) => piece.kind === 'gap')) {
        expect([kind, lines.slice(from, to).every((line) => line.kind === 'same'), to - from > 1]).toEqual([
          'gap',
          true,
          true,
        ]);
      }
    }
  });
});

describe('two columns', () => {
  it('have a removed line beside the added one that replaces it', () => {
    const lines = diff('a\nb\nc\nd\n', 'a\nB\nd\ne\n')!;
    expect(written(lines)).toEqual([' a', '-b', '-c', '+B', ' d', '+e']);
    expect(sideBySide(lines, { from: 0, to: lines.length })).toEqual([
      { left: 0, right: 0 },
      { left: 1, right: 3 },
      { left: 2 },
      { left: 4, right: 4 },
      { right: 5 },
    ]);
  });

  it('have every line once, in the order of its text', () => {
    const below = random(9);
    const text = (): string => Array.from({ length: below(20) }, () => 'abcd'[below(4)]!).join('\n');
    for (let round = 0; round < 200; round++) {
      const lines = diff(text(), text())!;
      const rows = rowsOf(lines, [{ from: 0, to: lines.length }], true);
      const side = (name: 'left' | 'right') =>
        rows.flatMap((row) => (row.kind === 'pair' && row[name] !== undefined ? [lines[row[name]]!] : []));
      expect(side('left').map((line) => line.before)).toEqual(before(lines).map((_, n) => n + 1));
      expect(side('right').map((line) => line.after)).toEqual(after(lines).map((_, n) => n + 1));
    }
  });
});

describe('selected lines', () => {
  const lines = diff('a\nb\nc\n', 'a\nx\ny\nc\n')!;

  it('are those of one side, in whichever direction they were selected', () => {
    expect(selection(lines, 'after', 0, 3)).toEqual({ side: 'after', first: 1, last: 3, quote: ['a', 'x', 'y'] });
    expect(selection(lines, 'after', 3, 0)).toEqual(selection(lines, 'after', 0, 3));
    expect(selection(lines, 'before', 0, 3)).toEqual({ side: 'before', first: 1, last: 2, quote: ['a', 'b'] });
    expect(selection(lines, 'before', 2, 3)).toBeUndefined();
  });

  it('are found by their numbers', () => {
    expect(indexOf(lines, 'before', 2)).toBe(1);
    expect(indexOf(lines, 'after', 2)).toBe(2);
    expect(indexOf(lines, 'after', 9)).toBe(-1);
  });
});

/** The number of common lines, computed naively. */
function longest(a: string[], b: string[]): number {
  if (a.length === 0 || b.length === 0) return 0;
  const [first, ...rest] = a;
  const at = b.indexOf(first!);
  const without = longest(rest, b);
  return at < 0 ? without : Math.max(without, 1 + longest(rest, b.slice(at + 1)));
}
