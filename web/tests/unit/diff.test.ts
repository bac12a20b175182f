import { describe, expect, it } from 'vitest';
import { diff, hunks, type Line, MOST_CHARACTERS, MOST_LINES } from '../../src/text/diff';

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
    let seed = 11;
    const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
    const text = (): string[] => Array.from({ length: random(9) }, () => 'abc'[random(3)]!);
    for (let round = 0; round < 400; round++) {
      const [old, now] = [text(), text()];
      const lines = diff(old.join('\n'), now.join('\n'))!;
      expect(before(lines)).toEqual(old);
      expect(after(lines)).toEqual(now);
      expect(lines.filter((line) => line.kind === 'same')).toHaveLength(longest(old, now));
    }
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

describe('what is around a change', () => {
  const numbered = (count: number): string[] => Array.from({ length: count }, (_, n) => `line ${n}`);
  const changed = (...at: number[]): string => numbered(40).with(at[0]!, 'x').with(at.at(-1)!, 'y').join('\n');
  const shown = (now: string) => hunks(diff(numbered(40).join('\n'), now)!);

  it('is three lines on either side, and what is left out is counted', () => {
    const { hunks, rest } = shown(changed(10, 30));
    expect(hunks.map(({ skipped, lines }) => [skipped, lines.length])).toEqual([
      [7, 8],
      [13, 8],
    ]);
    expect(rest).toBe(6);
  });

  it('is shown once where changes are near each other', () => {
    expect(shown(changed(10, 17)).hunks.map(({ lines }) => lines.length)).toEqual([16]);
    expect(shown(changed(10, 18)).hunks.map(({ lines }) => lines.length)).toEqual([8, 8]);
  });

  it('ends with the file', () => {
    const { hunks, rest } = shown(changed(0, 39));
    expect(hunks.map(({ skipped, lines }) => [skipped, lines.length])).toEqual([
      [0, 5],
      [32, 5],
    ]);
    expect(rest).toBe(0);
    expect(shown(numbered(40).join('\n'))).toEqual({ hunks: [], rest: 40 });
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
