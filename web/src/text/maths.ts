/** Formulas: their places in Markdown, and their drawing as MathML, which browsers lay out without styles of ours. */

import DOMPurify from 'dompurify';
import type { TokenizerAndRendererExtension } from 'marked';

/** Longer text between dollars is no formula. */
export const MOST_FORMULA_CHARACTERS = 2_000;

/** A formula by itself: `$$ … $$` or `\[ … \]`. */
export const blockFormula = (escape: (text: string) => string): TokenizerAndRendererExtension => ({
  name: 'blockFormula',
  level: 'block',
  start: (text) => indexOf(text, /\$\$|\\\[/),
  tokenizer(text) {
    const found = /^ {0,3}(?:\$\$([^$]{1,2000}?)\$\$|\\\[([^]{1,2000}?)\\\]) *(?:\n|$)/.exec(text);
    const formula = (found?.[1] ?? found?.[2] ?? '').trim();
    // An empty line ends a paragraph, and so a formula.
    if (!found || formula === '' || /\n\s*\n/.test(formula)) return undefined;
    return { type: 'blockFormula', raw: found[0], text: formula };
  },
  renderer: ({ text }) => `<div class="formula block">${escape(text as string)}</div>\n`,
});

/** A formula in a line: `$…$` or `\(…\)`. Amounts of money are none. */
export const inlineFormula = (escape: (text: string) => string): TokenizerAndRendererExtension => ({
  name: 'inlineFormula',
  level: 'inline',
  start: (text) => indexOf(text, /\$|\\\(/),
  tokenizer(text) {
    const found =
      /^\$\$(?!\s)([^$\n]{1,2000}?)\$\$/.exec(text) ??
      /^\$(?![\s$])((?:[^$\\\n]|\\[^\n]){1,2000}?)(?<!\s)\$(?![\d$])/.exec(text) ??
      /^\\\(([^\n]{1,2000}?)\\\)/.exec(text);
    const formula = found?.[1]?.trim();
    return found && formula ? { type: 'inlineFormula', raw: found[0], text: formula } : undefined;
  },
  renderer: ({ text }) => `<span class="formula">${escape(text as string)}</span>`,
});

/** Returns where a formula may begin. `marked` asks this for text that it would read as one piece otherwise. */
function indexOf(text: string, expression: RegExp): number | undefined {
  const at = text.search(expression);
  return at < 0 ? undefined : at;
}

/** Elements and attributes of the formulas, without any that could hold a style, an address or a script. */
const TAGS =
  'math semantics mrow mi mn mo ms mtext mspace msup msub msubsup munder mover munderover mmultiscripts mprescripts ' +
  'mfrac msqrt mroot mtable mtr mtd mpadded mphantom menclose none';
const ATTRIBUTES =
  'accent accentunder align columnalign columnlines columnspacing columnspan depth dir display displaystyle fence frame ' +
  'form height largeop linethickness lspace mathsize mathvariant maxsize minsize movablelimits notation rowalign rowlines ' +
  'rowspacing rowspan rspace scriptlevel separator stretchy symmetric voffset width';

/** Draws a formula. One that cannot be read is undefined. */
export async function draw(formula: string, isBlock: boolean): Promise<DocumentFragment | undefined> {
  const { default: temml } = await import('temml');
  let markup: string;
  try {
    markup = temml.renderToString(formula.slice(0, MOST_FORMULA_CHARACTERS), {
      displayMode: isBlock,
      throwOnError: true,
      trust: false,
      strict: false,
      maxExpand: 500,
      maxSize: [50, 50],
    });
  } catch {
    return undefined;
  }
  return DOMPurify.sanitize(withoutStyles(markup), {
    RETURN_DOM_FRAGMENT: true,
    ALLOWED_TAGS: TAGS.split(' ').concat('#text'),
    ALLOWED_ATTR: ATTRIBUTES.split(' '),
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}

/** The page's policy reports styles even in documents that are never shown. Quotation marks in values are escaped. */
function withoutStyles(markup: string): string {
  return markup.replace(/ (?:style|class)="[^"]*"/g, '');
}
