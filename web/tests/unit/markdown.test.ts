// @vitest-environment jsdom
import DOMPurify from 'dompurify';
import { describe, expect, it, vi } from 'vitest';
import { MarkdownStream } from '../../src/text/markdown';

/** The whole text, parsed at once. */
const whole = (text: string): string => new MarkdownStream().update(text, true).join('');

const DOCUMENT = `# Title

A paragraph with *emphasis*, \`code\` and a [link](https://example.org).

- one

- two
  - nested

1. first
2. second

\`\`\`rust
fn main() {

    println!("<b>");
}
\`\`\`

> quoted

| a | b |
|---|--:|
| 1 | 2 |

The end, with [a reference][r].

[r]: https://example.org/reference
`;

describe('text that streams in', () => {
  it('ends as the same HTML as text that comes whole, however it was cut', () => {
    for (const step of [3, 7, 50]) {
      const stream = new MarkdownStream();
      for (let at = 0; at <= DOCUMENT.length; at += step) stream.update(DOCUMENT.slice(0, at), false);
      expect(stream.update(DOCUMENT, true).join('')).toBe(whole(DOCUMENT));
    }
  });

  it('shows nearly the same on the way: only a reference waits for its target', () => {
    const stream = new MarkdownStream();
    let shown: string[] = [];
    for (let at = 0; at < DOCUMENT.length + 5; at += 5) shown = stream.update(DOCUMENT.slice(0, at), false);
    const text = (html: string): string => html.replace(/<[^>]+>|\s+/g, '');
    const before = shown.findIndex((html) => html.includes('The end'));
    expect(text(shown.slice(0, before).join(''))).toBe(text(whole(DOCUMENT.slice(0, DOCUMENT.indexOf('The end')))));
  });

  it('ends the same for whatever stands beside whatever else', () => {
    const pieces = [
      'text',
      'two\nlines',
      '- item',
      '- item\n\n  and its paragraph',
      '1. one\n2. two',
      '    indented code',
      '```\nfenced\n\ncode\n```',
      '> quote',
      '> quote\nlazy',
      '# heading',
      'heading\n---',
      '---',
      '|a|b|\n|-|-|\n|1|2|',
      '<div>html</div>',
      '<!-- comment\n\nthat goes on -->',
      '* * *',
      '- [x] done',
      '[not a link]: ',
      '~~~',
    ];
    let seed = 7;
    const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
    for (let round = 0; round < 150; round++) {
      const parts = Array.from({ length: 2 + random(6) }, () => pieces[random(pieces.length)]!);
      const text = parts.join(random(3) === 0 ? '\n' : '\n\n');
      const stream = new MarkdownStream();
      for (let at = 0; at < text.length; at += 1 + random(9)) stream.update(text.slice(0, at), false);
      expect(stream.update(text, true).join(''), text).toBe(whole(text));
    }
  });

  it('leaves blocks that are done alone', () => {
    const stream = new MarkdownStream();
    const before = stream.update('one\n\ntwo\n\nthree\n\nfour', false);
    const after = stream.update('one\n\ntwo\n\nthree\n\nfour and more', false);
    expect(after).toHaveLength(4);
    expect(after.slice(0, 3)).toEqual(before.slice(0, 3));
    expect(after[3]).toContain('four and more');
  });

  it('starts over when the text is another one', () => {
    const stream = new MarkdownStream();
    stream.update('one\n\ntwo\n\nthree\n\nfour', false);
    expect(stream.update('other', false).join('')).toBe('<p>other</p>\n');
  });

  it('reads only the last blocks again, however long the answer is', () => {
    const stream = new MarkdownStream();
    let text = 'Some words that are not special at all.\n\n'.repeat(100);
    stream.update(text, false);
    const cleaned = vi.spyOn(DOMPurify, 'sanitize');
    for (let frame = 0; frame < 10; frame++) stream.update((text += 'word '), false);
    expect(cleaned.mock.calls.length).toBeLessThanOrEqual(21);
    expect(cleaned.mock.calls.every(([html]) => String(html).length < 200)).toBe(true);
    cleaned.mockRestore();
  });
});

describe('what agents write is safe to show', () => {
  it.each([
    ['scripts', '<script>alert(1)</script>', '<script'],
    ['handlers', '<img src=x onerror=alert(1)>', '<img'],
    ['styles', '<p style="position:fixed">x</p>', '<p style'],
    ['frames', '<iframe src="https://example.org"></iframe>', '<iframe'],
    ['links that run code', '[x](javascript:alert(1))', 'javascript:alert'],
    ['links with data', '[x](data:text/html,hi)', 'href="data:'],
    ['links into the page', '[x](#token=abc)', 'href="#'],
    ['quotes in a link', '[x](https://e.org/"onclick="alert(1))', '" onclick'],
    ['a language that breaks out', '```"><script>alert(1)</script>\nx\n```', '<script'],
  ])('%s', (_name, text, forbidden) => {
    expect(whole(text)).not.toContain(forbidden);
  });

  it('shows HTML as it was written', () => {
    expect(whole('a <b>bold</b> word')).toContain('&lt;b&gt;bold&lt;/b&gt;');
  });

  it('shows tasks without a bullet', () => {
    expect(whole('- [x] done\n- plain')).toMatch(/<li class="task">☑ done<\/li>\s*<li>plain<\/li>/);
  });

  it('keeps what tables and numbered lists need', () => {
    expect(whole('|a|\n|--:|\n|1|')).toContain('<td align="right">');
    expect(whole('3. third')).toContain('<ol start="3">');
  });

  it('turns pictures into links, and opens links elsewhere', () => {
    const html = whole('![a cat](https://example.org/cat.png)');
    expect(html).toContain('href="https://example.org/cat.png"');
    expect(html).toContain('target="_blank"');
    expect(html).toContain('rel="noopener noreferrer"');
    expect(html).not.toContain('<img');
  });
});
