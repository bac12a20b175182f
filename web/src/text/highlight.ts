/**
 * Syntax highlighting, loaded when it is first needed. Tokens are plain data with a kind, which components draw as
 * text with a class, so nothing of it needs inline styles. The engine uses the browser's regular expressions.
 */

import type { HighlighterCore, LanguageRegistration } from '@shikijs/core';

/** The kinds of tokens that have a colour. Other text is `undefined`. */
export const TOKEN_KINDS = [
  'constant',
  'string',
  'comment',
  'keyword',
  'parameter',
  'function',
  'string-expression',
  'punctuation',
  'link',
] as const;
export type TokenKind = (typeof TOKEN_KINDS)[number];

export interface Token {
  text: string;
  kind: TokenKind | undefined;
}

export type TokenLine = Token[];

/** Longer texts are not highlighted: it would keep the page busy. */
export const MOST_HIGHLIGHTED = 200_000;
/** Longer lines are not highlighted. */
const MOST_LINE = 1_000;
/** The lines that are read at once; between them the page can do something else. */
const LINES_AT_ONCE = 150;

type Loader = () => Promise<{ default: LanguageRegistration[] }>;

/** The languages that the page knows. Each is a file of its own. */
const LANGUAGES: Record<string, Loader> = {
  bash: () => import('@shikijs/langs/bash'),
  c: () => import('@shikijs/langs/c'),
  cpp: () => import('@shikijs/langs/cpp'),
  csharp: () => import('@shikijs/langs/csharp'),
  css: () => import('@shikijs/langs/css'),
  diff: () => import('@shikijs/langs/diff'),
  docker: () => import('@shikijs/langs/docker'),
  go: () => import('@shikijs/langs/go'),
  html: () => import('@shikijs/langs/html'),
  ini: () => import('@shikijs/langs/ini'),
  java: () => import('@shikijs/langs/java'),
  javascript: () => import('@shikijs/langs/javascript'),
  json: () => import('@shikijs/langs/json'),
  jsx: () => import('@shikijs/langs/jsx'),
  kotlin: () => import('@shikijs/langs/kotlin'),
  lua: () => import('@shikijs/langs/lua'),
  make: () => import('@shikijs/langs/make'),
  markdown: () => import('@shikijs/langs/markdown'),
  php: () => import('@shikijs/langs/php'),
  python: () => import('@shikijs/langs/python'),
  ruby: () => import('@shikijs/langs/ruby'),
  rust: () => import('@shikijs/langs/rust'),
  sql: () => import('@shikijs/langs/sql'),
  svelte: () => import('@shikijs/langs/svelte'),
  swift: () => import('@shikijs/langs/swift'),
  toml: () => import('@shikijs/langs/toml'),
  tsx: () => import('@shikijs/langs/tsx'),
  typescript: () => import('@shikijs/langs/typescript'),
  vue: () => import('@shikijs/langs/vue'),
  xml: () => import('@shikijs/langs/xml'),
  yaml: () => import('@shikijs/langs/yaml'),
};

/** Other names of languages, and the endings of their files. */
const ALIASES: Record<string, string> = {
  'c++': 'cpp',
  'c#': 'csharp',
  cc: 'cpp',
  cfg: 'ini',
  cjs: 'javascript',
  cs: 'csharp',
  cts: 'typescript',
  cxx: 'cpp',
  dockerfile: 'docker',
  h: 'c',
  hpp: 'cpp',
  htm: 'html',
  js: 'javascript',
  jsonc: 'json',
  kt: 'kotlin',
  makefile: 'make',
  md: 'markdown',
  mjs: 'javascript',
  mk: 'make',
  mts: 'typescript',
  patch: 'diff',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  sh: 'bash',
  shell: 'bash',
  shellscript: 'bash',
  svg: 'xml',
  ts: 'typescript',
  yml: 'yaml',
  zsh: 'bash',
};

/** The language of a name, an alias or a file's ending; undefined if the page does not know it. */
export function languageOf(name: string): string | undefined {
  const lower = name.toLowerCase();
  const known = Object.hasOwn(ALIASES, lower) ? ALIASES[lower]! : lower;
  return Object.hasOwn(LANGUAGES, known) ? known : undefined;
}

/** The language of a file, by its name. */
export function languageOfFile(name: string): string | undefined {
  return languageOf(name.slice(name.lastIndexOf('.') + 1));
}

/** The text in coloured tokens, line by line. Unknown languages and long texts are one token a line. */
export async function highlight(code: string, language: string): Promise<TokenLine[]> {
  const lines = code.split('\n');
  const known = languageOf(language);
  if (!known || code.length > MOST_HIGHLIGHTED) return lines.map(plainLine);
  const highlighter = await highlighterFor(known);
  const found: TokenLine[] = [];
  let state: ReturnType<HighlighterCore['getLastGrammarState']> | undefined;
  for (let from = 0; from < lines.length; from += LINES_AT_ONCE) {
    if (from > 0) await new Promise((resolve) => setTimeout(resolve, 0));
    const tokens = highlighter.codeToTokensBase(lines.slice(from, from + LINES_AT_ONCE).join('\n'), {
      lang: known,
      theme: THEME,
      tokenizeMaxLineLength: MOST_LINE,
      ...(state ? { grammarState: state } : {}),
    });
    state = highlighter.getLastGrammarState(tokens);
    for (const line of tokens) found.push(line.map(({ content, color }) => ({ text: content, kind: kindOf(color) })));
  }
  return found;
}

function plainLine(text: string): TokenLine {
  return text ? [{ text, kind: undefined }] : [];
}

const THEME = 'css-variables';
const PREFIX = 'var(--shiki-token-';

function kindOf(color: string | undefined): TokenKind | undefined {
  if (!color?.startsWith(PREFIX)) return undefined;
  const name = color.slice(PREFIX.length, -1);
  return TOKEN_KINDS.find((kind) => kind === name);
}

let loading: Promise<HighlighterCore> | undefined;

async function highlighterFor(language: string): Promise<HighlighterCore> {
  loading ??= load();
  const highlighter = await loading;
  if (!highlighter.getLoadedLanguages().includes(language)) {
    await highlighter.loadLanguage((await LANGUAGES[language]!()).default);
  }
  return highlighter;
}

async function load(): Promise<HighlighterCore> {
  const [{ createCssVariablesTheme, createHighlighterCore }, { createJavaScriptRegexEngine }] = await Promise.all([
    import('@shikijs/core'),
    import('@shikijs/engine-javascript'),
  ]);
  return createHighlighterCore({
    themes: [createCssVariablesTheme({ name: THEME })],
    langs: [],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
}
