/**
 * Markdown to safe HTML, for growing text.
 *
 * Streaming text is split into blocks. All but the last two are final and never parsed again, so the work per frame
 * depends on the length of the last blocks, not on that of the whole answer. Text with reference links is parsed once
 * more as a whole when it is complete, since the targets may be at its end.
 */

import DOMPurify from 'dompurify';
import { Marked, type Token, type Tokens } from 'marked';
import { isEnforced } from '../checks';
import { blockFormula, inlineFormula } from './maths';
import { conversation as words } from './messages/conversation';

/** Sanitized HTML. If the page's policy requires it, the browser accepts nothing else. */
export type SafeHtml = string & { readonly cleaned: true };

const TAGS =
  'a b blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup table tbody td th thead tr ul';
const ATTRIBUTES = 'align class data-copy href rel start target type';

const marked = new Marked({
  gfm: true,
  renderer: {
    // HTML in the text is shown as text.
    html: ({ text }: Tokens.HTML | Tokens.Tag) => (isEnforced('page-markdown') ? escape(text) : text),
    // External pictures would reveal the reader to their server: they are links.
    image: ({ href, text }: Tokens.Image) => link(href, escape(text || href)),
    link({ href, tokens }: Tokens.Link) {
      return link(href, this.parser.parseInline(tokens));
    },
    listitem({ task, tokens }: Tokens.ListItem) {
      return `<li${task ? ' class="task"' : ''}>${this.parser.parse(tokens)}</li>\n`;
    },
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? '☑ ' : '☐ '),
    code: ({ text, lang }: Tokens.Code) => {
      const language = lang?.match(/^\S+/)?.[0] ?? '';
      return (
        `<div class="code"><div class="code-head"><span>${escape(language)}</span>` +
        `<button type="button" data-copy>${escape(words.copy)}</button></div>` +
        `<pre><code${language ? ` class="language-${escape(language)}"` : ''}>${escape(text)}\n</code></pre></div>`
      );
    },
    table({ header, rows }: Tokens.Table) {
      const cell = (tag: string, { tokens, align }: Tokens.TableCell): string =>
        `<${tag}${align ? ` align="${align}"` : ''}>${this.parser.parseInline(tokens)}</${tag}>`;
      const row = (tag: string, cells: Tokens.TableCell[]): string =>
        `<tr>${cells.map((c) => cell(tag, c)).join('')}</tr>`;
      const body = rows.map((cells) => row('td', cells)).join('');
      return `<div class="table"><table><thead>${row('th', header)}</thead><tbody>${body}</tbody></table></div>`;
    },
  },
});

marked.use({ extensions: [blockFormula(escape), inlineFormula(escape)] });

/** The number of blocks at the end that may still change: a list or a quotation continues after an empty line. */
const OPEN_BLOCKS = 2;

export class MarkdownStream {
  /** The length and the end of the final blocks' text, and their HTML. */
  #doneLength = 0;
  #doneEnd = '';
  #done: SafeHtml[] = [];
  #tailText = '';
  #tail: SafeHtml[] = [];
  /** There are reference links. */
  #references = false;

  /** The blocks' HTML; unchanged ones are the same values as before. */
  update(content: string, complete: boolean): SafeHtml[] {
    // Comparing all of a long text in every frame would cost more than drawing its end.
    if (!content.startsWith(this.#doneEnd, this.#doneLength - this.#doneEnd.length)) {
      this.#doneLength = 0;
      this.#doneEnd = '';
      this.#done = [];
    }
    const tail = content.slice(this.#doneLength);
    if (tail !== this.#tailText) this.#read(tail);
    return complete && this.#references ? this.#readAll(content) : [...this.#done, ...this.#tail];
  }

  #readAll(content: string): SafeHtml[] {
    const shown = [...this.#done, ...this.#tail];
    const all = blocks(marked.lexer(content)).map(render);
    return all.map((html, n) => (String(html) === String(shown[n]) ? shown[n]! : html));
  }

  #read(tail: string): void {
    const tokens = marked.lexer(tail);
    this.#references ||= Object.keys(tokens.links).length > 0;
    const found = blocks(tokens);
    const done = found.splice(0, Math.max(0, found.length - OPEN_BLOCKS));
    this.#done.push(...done.map(render));
    const text = done.map(rawOf).join('');
    this.#doneLength += text.length;
    this.#doneEnd = (this.#doneEnd + text).slice(-COMPARED);
    this.#tailText = tail.slice(text.length);
    this.#tail = found.map(render);
  }
}

/** The characters by which a text is recognised as the one of before. */
const COMPARED = 200;

/** A block with the empty lines after it. */
type Block = Token[];

function blocks(tokens: Token[]): Block[] {
  const found: Block[] = [];
  for (const token of tokens) {
    const last = found.at(-1);
    if (token.type === 'space' && last) last.push(token);
    else found.push([token]);
  }
  return found;
}

function rawOf(block: Block): string {
  return block.map((token) => token.raw).join('');
}

function render(block: Block): SafeHtml {
  return clean(marked.parser(block));
}

function clean(html: string): SafeHtml {
  return DOMPurify.sanitize(html, {
    RETURN_TRUSTED_TYPE: true,
    ALLOWED_TAGS: TAGS.split(' '),
    ALLOWED_ATTR: ATTRIBUTES.split(' '),
    ALLOWED_URI_REGEXP: SAFE_LINK,
    // Every attribute counts as a URI unless it is listed here.
    ADD_URI_SAFE_ATTR: ['align', 'data-copy', 'rel', 'start', 'target', 'type'],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  }) as unknown as SafeHtml;
}

const SAFE_LINK = /^(?:https?:|mailto:)/i;

/** Other links would run code, or lead into the page itself: only their text is kept. */
function link(href: string, inner: string): string {
  if (!SAFE_LINK.test(href)) return inner;
  return `<a href="${escape(href)}" target="_blank" rel="noopener noreferrer">${inner}</a>`;
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character]!);
}
