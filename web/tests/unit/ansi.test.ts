import { describe, expect, it } from 'vitest';
import {
  isStyled,
  MOST_ANSI_CHARACTERS,
  MOST_ANSI_COLUMNS,
  MOST_ANSI_LINES,
  parseAnsi,
  plainAnsi,
} from '../../src/text/ansi';
import { randomizer } from './random';

const ESC = '\u001b';
/** The lines, with styles in brackets. */
const lines = (text: string): string[] =>
  parseAnsi(text).lines.map((line) => line.map(({ text, style }) => (style ? `[${style}:${text}]` : text)).join(''));

describe('terminal output', () => {
  it('has colours and weights as classes', () => {
    expect(lines(`${ESC}[31mred${ESC}[0m ${ESC}[1;4mbold${ESC}[22m under${ESC}[m`)).toEqual([
      '[fg-red:red] [bold underline:bold][underline: under]',
    ]);
    expect(lines(`${ESC}[97;44mx${ESC}[39my${ESC}[7mz`)).toEqual([
      '[fg-bright-white bg-blue:x][bg-blue:y][fg-blue inverse:z]',
    ]);
  });

  it('has every colour as one of sixteen', () => {
    expect(lines(`${ESC}[38;5;196ma${ESC}[38;5;9mb${ESC}[38;2;10;200;20mc${ESC}[48;5;16md${ESC}[38:5:12me`)).toEqual([
      '[fg-red:a][fg-bright-red:b][fg-green:c][fg-green bg-black:d][fg-bright-blue bg-black:e]',
    ]);
  });

  it('is drawn over by a carriage return, as a progress bar is', () => {
    expect(lines('10 %\r50 %\r100 %\nnext')).toEqual(['100 %', 'next']);
    expect(lines(`a long line\rshort${ESC}[K`)).toEqual(['short']);
    expect(lines('over\rund')).toEqual(['undr']);
    expect(lines('windows\r\nlines\r\n')).toEqual(['windows', 'lines']);
    expect(lines('ab\b\bc')).toEqual(['cb']);
  });

  it('follows the cursor to earlier lines, which programs with several bars draw again', () => {
    expect(lines(`one 1 %\ntwo 1 %\n${ESC}[2A${ESC}[2Kone 9 %\n${ESC}[Ktwo 9 %`)).toEqual(['one 9 %', 'two 9 %']);
    expect(lines(`gone${ESC}[2J${ESC}[Hnew`)).toEqual(['new']);
    expect(lines(`a\nb\nc${ESC}[2A${ESC}[Jx`)).toEqual(['ax']);
    expect(lines(`${ESC}[5Gx`)).toEqual(['    x']);
  });

  it('has no titles, links and unknown sequences', () => {
    expect(
      lines(
        `${ESC}]0;title\u0007a${ESC}]8;;https://example.org${ESC}\\b${ESC}]8;;${ESC}\\${ESC}(Bc${ESC}[?25ld${ESC}=e`,
      ),
    ).toEqual(['abcde']);
  });

  it('shows characters that hide or turn text as escapes', () => {
    expect(lines('a\u202eb\u0001c')).toEqual(['a\\u202eb\\u0001c']);
  });

  it('is copied without its sequences', () => {
    expect(plainAnsi(`${ESC}[31mred${ESC}[0m\nx\ry`)).toBe('red\ny');
    expect(plainAnsi('as it is')).toBe('as it is');
    expect([isStyled('a\r\nb'), isStyled('a\rb'), isStyled(`${ESC}[m`)]).toEqual([false, true, true]);
  });
});

describe('hostile output', () => {
  it('is cut at its beginning, and in lines that are too wide', () => {
    const many = parseAnsi('x\n'.repeat(3 * MOST_ANSI_LINES));
    expect([many.lines.length, many.isCut]).toEqual([MOST_ANSI_LINES, true]);
    const wide = parseAnsi('x'.repeat(2 * MOST_ANSI_COLUMNS)).lines[0]!;
    expect(wide.map((span) => span.text).join('')).toHaveLength(MOST_ANSI_COLUMNS);
    expect(parseAnsi(`${'x'.repeat(10)}${'\n'.repeat(MOST_ANSI_CHARACTERS)}`).isCut).toBe(true);
  });

  it('moves no cursor outside of the lines that are there', () => {
    expect(parseAnsi(`a${ESC}[99999B${ESC}[99999Cb`).lines).toHaveLength(1);
    expect(parseAnsi(`a${ESC}[99999A${ESC}[99999Db`).lines[0]![0]!.text).toBe('b');
  });

  it('of any kind is read quickly to known classes and text without control characters', () => {
    const pieces = [
      ESC,
      `${ESC}[`,
      `${ESC}]`,
      `${ESC}P`,
      '\u009b',
      ';',
      ':',
      '?',
      '3',
      '38',
      '99999',
      'm',
      'K',
      'J',
      'A',
      'H',
      'G',
      '\r',
      '\n',
      '\b',
      '\t',
      '\u0007',
      '\u202e',
      '<b>',
      'é',
      '\ud800',
      '"',
      'text',
    ];
    const random = randomizer(11);
    for (let round = 0; round < 400; round++) {
      const text = Array.from({ length: random(120) }, () => pieces[random(pieces.length)]!).join('');
      const { lines } = parseAnsi(text);
      expect(lines.length, JSON.stringify(text)).toBeLessThanOrEqual(text.split('\n').length);
      for (const { text: shown, style } of lines.flat()) {
        expect(shown, JSON.stringify(text)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
        expect(style).toMatch(/^(?:(?:[fb]g-(?:bright-)?[a-z]+|bold|dim|italic|underline|strike|inverse)(?: |$))*$/);
      }
    }
    const begun = performance.now();
    for (const piece of [`${ESC}[38;5;1m`, `${ESC}[`, `${ESC}]x`, `${ESC}[1K`, `${ESC}[2J`, '\r', `x${ESC}[1A\n`]) {
      parseAnsi(piece.repeat(MOST_ANSI_CHARACTERS / piece.length));
    }
    expect(performance.now() - begun).toBeLessThan(20_000);
  });
});
