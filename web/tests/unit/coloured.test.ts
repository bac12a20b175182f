import { describe, expect, it } from 'vitest';
import { coloured, languageOfFile } from '../../src/text/coloured';
import { MOST_CODE_CHARACTERS } from '../../src/text/highlight';

const joined = (lines: { text: string }[][]): string =>
  lines.map((line) => line.map(({ text }) => text).join('')).join('\n');

describe('a text in colours', () => {
  it('is the same text, with a class for each token', async () => {
    const code = '// one\nconst a = "two";\n\nfunction f(x) { return `${x}`; }\n';
    // The first lines of a language compile its patterns, which may take longer than a line is given.
    for (let n = 0; n < 3; n++) await coloured(code, 'typescript');
    const lines = await coloured(code, 'typescript');
    expect(joined(lines)).toBe(code);
    expect(lines[0]).toEqual([{ text: '// one', class: 'token-comment' }]);
    expect(lines[1]!.some((token) => token.text.startsWith('const') && token.class === 'token-keyword')).toBe(true);
  });

  it('goes on after the lines that are read at once', async () => {
    const code = `/*\n${'in a comment\n'.repeat(800)}*/\nlet x = 1;`;
    for (let n = 0; n < 3; n++) await coloured(code, 'rust');
    const lines = await coloured(code, 'rust');
    expect(joined(lines)).toBe(code);
    expect(lines[790]).toEqual([{ text: 'in a comment', class: 'token-comment' }]);
    expect(lines.at(-1)![0]!.class).toBe('token-keyword');
  });

  it('has none if it is long', async () => {
    const long = 'let x;\n'.repeat(MOST_CODE_CHARACTERS / 7 + 1);
    expect((await coloured(long, 'rust')).slice(0, 1)).toEqual([[{ text: 'let x;', class: '' }]]);
  });
});

describe('the language of a file', () => {
  it('is that of its ending or of its whole name', () => {
    expect(['a.tsx', 'Makefile', 'x.min.js', 'lib.RS', 'LICENSE', 'x.constructor', ''].map(languageOfFile)).toEqual([
      'tsx',
      'make',
      'javascript',
      'rust',
      undefined,
      undefined,
      undefined,
    ]);
  });
});
