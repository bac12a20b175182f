import { describe, expect, it } from 'vitest';
import { highlight, MOST_CODE_CHARACTERS } from '../../src/text/highlight';
import { languageOf, languageOfFile } from '../../src/text/languages';

const joined = (lines: { text: string }[][]): string =>
  lines.map((line) => line.map(({ text }) => text).join('')).join('\n');

describe('highlighted text', () => {
  it('is the same text, with classes', async () => {
    const code = '// one\nconst a = "two";\n\nfunction f(x) { return `${x}`; }\n';
    const lines = await highlight(code, 'ts');
    expect(joined(lines)).toBe(code);
    expect(lines[0]).toEqual([{ text: '// one', class: 'token-comment' }]);
    expect(lines[1]).toContainEqual({ text: 'const', class: 'token-keyword' });
  });

  it('goes on after the lines that are read at once', async () => {
    const code = `/*\n${'in a comment\n'.repeat(400)}*/\nlet x = 1;`;
    const lines = await highlight(code, 'rust');
    expect(joined(lines)).toBe(code);
    expect(lines[390]).toEqual([{ text: 'in a comment', class: 'token-comment' }]);
    expect(lines.at(-1)).toContainEqual({ text: 'let', class: 'token-keyword' });
  });

  it('is plain in an unknown language, or if it is long', async () => {
    expect(await highlight('a\n<b>', 'klingon')).toEqual([[{ text: 'a', class: '' }], [{ text: '<b>', class: '' }]]);
    const long = 'let x;\n'.repeat(MOST_CODE_CHARACTERS / 7 + 1);
    expect((await highlight(long, 'ts'))[0]).toEqual([{ text: 'let x;', class: '' }]);
  });
});

describe('a language', () => {
  it('is known by its name, its aliases and the endings of files', () => {
    expect(['RS', 'c++', 'yml', 'json'].map(languageOf)).toEqual(['rust', 'cpp', 'yaml', 'json']);
    expect(['a.tsx', 'Makefile', 'x/y.min.js', 'LICENSE'].map(languageOfFile)).toEqual([
      'tsx',
      'make',
      'javascript',
      undefined,
    ]);
    expect(['constructor', '__proto__', ''].map(languageOf)).toEqual([undefined, undefined, undefined]);
  });
});
