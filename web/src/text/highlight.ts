/**
 * Code in colours. The grammars and their engine, which needs no WebAssembly, are loaded with the first block.
 *
 * A block is read a few lines at a time, so that the page can do other work between them. Tokens become classes.
 */

import type { GrammarState, HighlighterCore, ThemeRegistration } from '@shikijs/core';
import { GRAMMARS } from './languages';

/** A piece of a line, with its class. */
export interface CodeToken {
  text: string;
  class: string;
}

/** Longer blocks and lines stay without colours: grammars take too long for them. */
export const MOST_CODE_CHARACTERS = 100_000;
const MOST_LINE_CHARACTERS = 2_000;
/** A line that takes longer is left as it is. The first lines of a language take long, since its patterns are compiled then. */
const MOST_LINE_MS = 5_000;
/** The lines that are read at a time. */
const LINES_IN_STEP = 8;

/** Classes and the scopes that get them. A later row wins over an earlier one. */
const CLASSES: [string, string[]][] = [
  ['variable', ['variable.other.constant', 'variable.language', 'support.variable', 'meta.definition.variable.name']],
  ['number', ['constant.numeric', 'constant.language', 'constant.character', 'constant.other']],
  ['string', ['string', 'punctuation.definition.string', 'markup.inline.raw', 'constant.other.symbol']],
  ['keyword', ['keyword', 'storage', 'keyword.operator.expression', 'keyword.operator.new', 'markup.bold']],
  ['plain', ['keyword.operator', 'punctuation', 'storage.type.java', 'meta.embedded']],
  ['function', ['entity.name.function', 'support.function', 'meta.function-call entity.name', 'entity.name.section']],
  ['type', ['entity.name.type', 'entity.name.class', 'support.type', 'support.class', 'entity.name.namespace']],
  ['tag', ['entity.name.tag', 'markup.heading', 'support.type.property-name']],
  ['attribute', ['entity.other.attribute-name', 'meta.object-literal.key']],
  ['comment', ['comment', 'punctuation.definition.comment']],
  ['inserted', ['markup.inserted']],
  ['deleted', ['markup.deleted']],
];

/** Colours that stand for the index of a class: the theme knows only colours. */
const colourOf = (index: number): string => `#0000${(index + 1).toString(16).padStart(2, '0')}`;
const CLASS_OF = new Map(CLASSES.map(([name], index) => [colourOf(index), name === 'plain' ? '' : `token-${name}`]));

const THEME: ThemeRegistration = {
  name: 'grove',
  type: 'light',
  fg: '#000000',
  bg: '#ffffff',
  settings: CLASSES.map(([, scope], index) => ({ scope, settings: { foreground: colourOf(index) } })),
};

let loading: Promise<HighlighterCore> | undefined;

function load(): Promise<HighlighterCore> {
  loading ??= Promise.all([import('@shikijs/core'), import('@shikijs/engine-javascript')]).then(([core, engine]) =>
    core.createHighlighterCore({
      themes: [THEME],
      langs: [],
      // Patterns that the browser's expressions cannot express match nothing.
      engine: engine.createJavaScriptRegexEngine({ forgiving: true }),
    }),
  );
  // A failure, as without a connection, is tried again with the next block.
  loading.catch(() => (loading = undefined));
  return loading;
}

/** Reads a block: each call of the result returns the tokens of the next lines, and undefined at the end. */
export async function reader(code: string, language: string): Promise<() => CodeToken[][] | undefined> {
  const grammar = GRAMMARS[language];
  if (!grammar) throw new Error(`no grammar for ${language}`);
  const highlighter = await load();
  await highlighter.loadLanguage(grammar());
  const lines = code.split('\n');
  let at = 0;
  let state: GrammarState | undefined;
  return () => {
    if (at >= lines.length) return undefined;
    const text = lines.slice(at, at + LINES_IN_STEP).join('\n');
    at += LINES_IN_STEP;
    const tokens = highlighter.codeToTokensBase(text, {
      lang: language,
      theme: 'grove',
      tokenizeMaxLineLength: MOST_LINE_CHARACTERS,
      tokenizeTimeLimit: MOST_LINE_MS,
      ...(state ? { grammarState: state } : {}),
    });
    state = highlighter.getLastGrammarState(tokens) ?? undefined;
    return tokens.map((line) => merged(line.map(({ content, color }) => ({ text: content, class: classOf(color) }))));
  };
}

function classOf(colour: string | undefined): string {
  return CLASS_OF.get(colour?.toLowerCase() ?? '') ?? '';
}

/** Neighbours of the same class are one token. */
function merged(tokens: CodeToken[]): CodeToken[] {
  const found: CodeToken[] = [];
  for (const token of tokens) {
    const last = found.at(-1);
    if (last?.class === token.class) last.text += token.text;
    else found.push({ ...token });
  }
  return found;
}
