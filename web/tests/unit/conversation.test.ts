// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import { foldRuns } from '../../src/state/runs';
import { Find, MOST_MATCHES } from '../../src/store/find.svelte';
import { BLOCKS_IN_GROUP, BlockGroups } from '../../src/text/groups';
import { reader } from '../../src/text/highlight';
import { GRAMMARS, languageOf } from '../../src/text/languages';
import { MarkdownStream, type SafeHtml } from '../../src/text/markdown';
import { draw } from '../../src/text/maths';
import { diagram, diagramKind, MOST_DIAGRAM_CHARACTERS } from '../../src/text/diagram';
import { marksOf, MOST_MARKS } from '../../src/text/rail';
import { runText } from '../../src/text/tools';
import { searchText } from '../../src/text/turns';
import type { ResponsePart, ToolCallState, Turn } from '../../src/wire/types';

const html = (text: string): string => new MarkdownStream().update(text, true).join('');

let calls = 0;
const call = (toolKind: string | undefined, more: object = {}): ResponsePart => ({
  kind: 'toolCall',
  toolCall: {
    toolCallId: `c${calls++}`,
    toolName: 't',
    displayName: 'T',
    invocationMessage: 'T',
    confirmed: 'not-needed',
    status: 'completed',
    success: true,
    pastTenseMessage: 'T',
    _meta: toolKind === undefined ? {} : { toolKind },
    ...more,
  } as unknown as ToolCallState,
});
const said: ResponsePart = { kind: 'markdown', id: 'm', content: 'Text' };
const turn = (id: string, text: string, parts: ResponsePart[] = []): Turn => ({
  id,
  state: 'complete',
  message: { text, origin: { kind: 'user' } },
  responseParts: parts,
});

describe('reads and searches in a row', () => {
  const shapes = (parts: ResponsePart[]): string[] =>
    foldRuns(parts).map((item) => (item.kind === 'run' ? `${item.at}:${item.calls.length} calls` : `${item.at}`));

  it('are one line from three on', () => {
    expect(shapes([call('read'), call('read'), said])).toEqual(['0', '1', '2']);
    expect(shapes([said, call('read'), call('search'), call('read'), said])).toEqual(['0', '1:3 calls', '4']);
  });

  it('end at anything else, and at a call that a person has to see', () => {
    expect(shapes([call('read'), call('read'), call('edit'), call('read')])).toEqual(['0', '1', '2', '3']);
    for (const more of [{ success: false }, { status: 'pending-confirmation' }, { status: 'cancelled' }]) {
      expect(shapes([call('read'), call('read'), call('read', more), call('read')])).toEqual(['0', '1', '2', '3']);
    }
    expect(shapes([call(undefined), call(undefined), call(undefined)])).toEqual(['0', '1', '2']);
  });

  it('lose and double no part', () => {
    const kinds = ['read', 'search', 'edit', undefined];
    for (let seed = 0; seed < 256; seed++) {
      const parts = [0, 1, 2, 3, 4, 5].map((n) => call(kinds[(seed >> n) % 4]));
      const again = foldRuns(parts).flatMap((item) =>
        item.kind === 'run' ? item.calls : item.part.kind === 'toolCall' ? [item.part.toolCall] : [],
      );
      expect(again).toEqual(parts.map((part) => (part.kind === 'toolCall' ? part.toolCall : undefined)));
    }
  });

  it('say how many files were read', () => {
    const reads = ['/w/a.rs', '/w/b.rs', '/w/a.rs'].map((path) =>
      call('read', { toolInput: JSON.stringify({ path }) }),
    );
    const states = (parts: ResponsePart[]): ToolCallState[] =>
      parts.flatMap((part) => (part.kind === 'toolCall' ? [part.toolCall] : []));
    expect(runText(states(reads))).toEqual({ icon: 'read', title: 'Read 2 files', files: 'a.rs, b.rs' });
    expect(runText(states([...reads, call('search')])).title).toBe('Read 2 files, searched once');
    expect(runText(states([call('search'), call('search'), call('search')])).title).toBe('Searched 3 times');
  });
});

describe('the blocks of a long text', () => {
  it('are the same groups while only the end grows', () => {
    const blocks = Array.from({ length: 3 * BLOCKS_IN_GROUP }, (_, n) => `<p>${n}</p>` as SafeHtml);
    const groups = new BlockGroups();
    const before = groups.update(blocks);
    const after = groups.update([...blocks.slice(0, -1), '<p>end</p>' as SafeHtml, '<p>more</p>' as SafeHtml]);
    expect(before).toHaveLength(3);
    expect(after).toHaveLength(4);
    expect(after.slice(0, 2).map((group, n) => group === before[n])).toEqual([true, true]);
    expect(after.flat()).toEqual([...blocks.slice(0, -1), '<p>end</p>', '<p>more</p>']);
  });
});

describe('code', () => {
  it('has a language if its block names a known one', () => {
    expect(['rs', 'Rust', 'c++', 'bash', 'constructor', '__proto__', ''].map(languageOf)).toEqual([
      'rust',
      'rust',
      'cpp',
      'shellscript',
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('is read in steps to the tokens that it has as a whole', async () => {
    const code = `/* a comment\n${'that goes on\n'.repeat(30)}*/\nfn main() { let text = "a string"; }\n`;
    const next = await reader(code, 'rust');
    const lines: string[][] = [];
    let steps = 0;
    for (let more = next(); more; more = next(), steps++) {
      lines.push(...more.map((line) => line.map((token) => `${token.class}|${token.text}`)));
    }
    expect(steps).toBeGreaterThan(2);
    expect(lines.map((line) => line.map((token) => token.replace(/^[^|]*\|/, '')).join('')).join('\n')).toBe(code);
    expect(lines[20]).toEqual(['token-comment|that goes on']);
    const last = lines.at(-2)!;
    expect(last).toContain('token-keyword|fn');
    expect(last).toContain('token-string|"a string"');
    expect(last.some((token) => token.startsWith('token-function|main'))).toBe(true);
  });

  it.each(Object.keys(GRAMMARS))('of %s is read without WebAssembly and without a change', async (language) => {
    const code = 'if (a < 1) { return "x" + `y`; } // z\n# w\n<b c="d">e</b>\n\nkey: value\n';
    const next = await reader(code, language);
    let text: string[] = [];
    for (let more = next(); more; more = next()) {
      text = text.concat(more.map((line) => line.map((token) => token.text).join('')));
    }
    expect(text.join('\n')).toBe(code);
  });
});

describe('formulas', () => {
  it('are found beside amounts of money', () => {
    expect(html('an $x^2$ here')).toContain('<span class="formula">x^2</span>');
    expect(html('an \\(x < y\\) here')).toContain('<span class="formula">x &lt; y</span>');
    expect(html('$$\n\\sum_i x_i\n$$\n\nthen')).toContain('<div class="formula block">\\sum_i x_i</div>');
    expect(html('\\[ a + b \\]')).toContain('<div class="formula block">a + b</div>');
    for (const text of ['$5 and $10', '`$x$`', 'echo $HOME and $PATH', '$ x $']) {
      expect(html(text), text).not.toContain('formula');
    }
  });

  it('are MathML without styles, addresses and scripts', async () => {
    const shown = async (formula: string): Promise<string> => {
      const target = document.createElement('div');
      target.append((await draw(formula, false)) ?? '');
      return target.innerHTML;
    };
    expect(await shown('\\frac{a}{b}')).toMatch(/^<math[^>]*>.*<mfrac><mi>a<\/mi><mi>b<\/mi><\/mfrac>.*<\/math>$/);
    for (const hostile of [
      '\\href{javascript:alert(1)}{x}',
      '\\style{color:red}{x}',
      '\\htmlData{onclick=alert(1)}{x}',
      '\\includegraphics{https://example.org/x.png}',
      '\\text{<img src=x onerror=alert(1)>}',
      '\\color{red}x\\class{a"onclick=alert(1)}{y}',
      '\\begin{array}{|c|}a\\end{array}',
    ]) {
      const markup = await shown(hostile);
      expect(markup, hostile).not.toMatch(/<(?!\/?m)|style=|href|onclick=|<[^>]*onerror/);
    }
    expect(await draw('\\frac{', false)).toBeUndefined();
    // A definition that calls itself ends.
    expect(await draw('\\def\\x{\\x\\x}\\x', false)).toBeUndefined();
  });
});

describe('diagrams', () => {
  const colours = { ground: '#fff', text: '#000', line: '#888', accent: '#080' };

  it('are pictures, which run nothing and load nothing', async () => {
    const address = await diagram('graph TD\n  A[Start] --> B{<script>alert(1)</script>}', colours);
    expect(address).toMatch(/^data:image\/svg\+xml;charset=utf-8,%3Csvg/);
    expect(decodeURIComponent(address!)).toContain('Start');
    expect(decodeURIComponent(address!)).not.toContain('@import');
  });

  it('that cannot be drawn stay text', async () => {
    expect(await diagram('pie title Pets\n "Dogs" : 386', colours)).toBeUndefined();
    expect(await diagram(`graph TD\n${'A-->B\n'.repeat(MOST_DIAGRAM_CHARACTERS / 6)}`, colours)).toBeUndefined();
    expect(diagramKind('  sequenceDiagram\n A->>B: x')).toBe('sequenceDiagram');
  });
});

describe('the rail', () => {
  it('has the prompts of a person, and of many an even choice with the last', () => {
    const agents = { ...turn('x', 'x'), message: { text: 'x', origin: { kind: 'agent' as const } } };
    expect(marksOf([turn('a', ' two\nlines '), agents]).map((mark) => mark.text)).toEqual(['two lines']);
    const many = marksOf(Array.from({ length: 10_000 }, (_, n) => turn(`t${n}`, `Prompt ${n}`)));
    expect(many.length).toBeLessThanOrEqual(MOST_MARKS + 1);
    expect([many[0]!.turn, many.at(-1)!.turn]).toEqual(['t0', 't9999']);
  });
});

describe('a search', () => {
  it('finds what is shown: prompts, text without its syntax, and the calls', () => {
    const command = { toolInput: '{"command":"make Test"}' };
    const text = searchText(
      turn('a', 'The Prompt', [{ ...said, content: 'A **bold** [link](https://e.org)' }, call('terminal', command)]),
    );
    for (const shown of ['the prompt', 'a bold link', 'make test']) expect(text).toContain(shown);
    expect(text).not.toContain('e.org');
  });

  it('begins at the newest match, goes both ways and around, and stays where it was', async () => {
    const find = new Find();
    const turns = [turn('a', 'x y x'), turn('b', 'none'), turn('c', 'X')];
    await find.search(turns, 'x');
    expect([find.matches.length, find.turns, find.current]).toEqual([3, 2, { turn: 'c', nth: 0, all: 1 }]);
    find.step(-1);
    expect(find.current).toMatchObject({ turn: 'a', nth: 1, all: 2 });
    await find.search([turn('older', 'x'), ...turns], 'x');
    expect([find.matches.length, find.current]).toEqual([4, expect.objectContaining({ turn: 'a', nth: 1 })]);
    find.step(2);
    expect(find.current).toMatchObject({ turn: 'older', nth: 0 });
    await find.search(turns, ' ');
    expect(find.matches).toEqual([]);
  });

  it('of very many matches ends', async () => {
    const find = new Find();
    await find.search([turn('a', 'x'.repeat(3 * MOST_MATCHES))], 'x');
    expect([find.matches.length, find.isFull]).toEqual([MOST_MATCHES, true]);
  });
});
