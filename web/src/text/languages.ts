/** The programming languages whose code is coloured, and the names that agents write for them. Each is loaded on demand. */

import type { LanguageRegistration } from '@shikijs/core';

type Grammar = Promise<{ default: LanguageRegistration[] }>;

export const GRAMMARS: Record<string, () => Grammar> = {
  c: () => import('@shikijs/langs/c'),
  cpp: () => import('@shikijs/langs/cpp'),
  csharp: () => import('@shikijs/langs/csharp'),
  css: () => import('@shikijs/langs/css'),
  dart: () => import('@shikijs/langs/dart'),
  diff: () => import('@shikijs/langs/diff'),
  docker: () => import('@shikijs/langs/docker'),
  elixir: () => import('@shikijs/langs/elixir'),
  go: () => import('@shikijs/langs/go'),
  graphql: () => import('@shikijs/langs/graphql'),
  haskell: () => import('@shikijs/langs/haskell'),
  hcl: () => import('@shikijs/langs/hcl'),
  html: () => import('@shikijs/langs/html'),
  ini: () => import('@shikijs/langs/ini'),
  java: () => import('@shikijs/langs/java'),
  javascript: () => import('@shikijs/langs/javascript'),
  json: () => import('@shikijs/langs/json'),
  jsonc: () => import('@shikijs/langs/jsonc'),
  jsx: () => import('@shikijs/langs/jsx'),
  kotlin: () => import('@shikijs/langs/kotlin'),
  lua: () => import('@shikijs/langs/lua'),
  make: () => import('@shikijs/langs/make'),
  markdown: () => import('@shikijs/langs/markdown'),
  nix: () => import('@shikijs/langs/nix'),
  php: () => import('@shikijs/langs/php'),
  powershell: () => import('@shikijs/langs/powershell'),
  proto: () => import('@shikijs/langs/proto'),
  python: () => import('@shikijs/langs/python'),
  ruby: () => import('@shikijs/langs/ruby'),
  rust: () => import('@shikijs/langs/rust'),
  scss: () => import('@shikijs/langs/scss'),
  shellscript: () => import('@shikijs/langs/shellscript'),
  sql: () => import('@shikijs/langs/sql'),
  svelte: () => import('@shikijs/langs/svelte'),
  swift: () => import('@shikijs/langs/swift'),
  toml: () => import('@shikijs/langs/toml'),
  tsx: () => import('@shikijs/langs/tsx'),
  typescript: () => import('@shikijs/langs/typescript'),
  vue: () => import('@shikijs/langs/vue'),
  xml: () => import('@shikijs/langs/xml'),
  yaml: () => import('@shikijs/langs/yaml'),
  zig: () => import('@shikijs/langs/zig'),
};

const ALIASES: Record<string, string> = {
  bash: 'shellscript',
  sh: 'shellscript',
  shell: 'shellscript',
  zsh: 'shellscript',
  console: 'shellscript',
  cfg: 'ini',
  cjs: 'javascript',
  cts: 'typescript',
  cxx: 'cpp',
  mk: 'make',
  'c++': 'cpp',
  cc: 'cpp',
  h: 'c',
  hpp: 'cpp',
  cs: 'csharp',
  'c#': 'csharp',
  patch: 'diff',
  dockerfile: 'docker',
  ex: 'elixir',
  golang: 'go',
  gql: 'graphql',
  hs: 'haskell',
  terraform: 'hcl',
  tf: 'hcl',
  htm: 'html',
  js: 'javascript',
  mjs: 'javascript',
  json5: 'jsonc',
  kt: 'kotlin',
  makefile: 'make',
  md: 'markdown',
  ps1: 'powershell',
  pwsh: 'powershell',
  protobuf: 'proto',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  ts: 'typescript',
  mts: 'typescript',
  yml: 'yaml',
  svg: 'xml',
};

/** The language that a code block names; undefined if its code is not coloured. */
export function languageOf(name: string): string | undefined {
  const given = name.toLowerCase();
  if (Object.hasOwn(GRAMMARS, given)) return given;
  return Object.hasOwn(ALIASES, given) ? ALIASES[given] : undefined;
}

/** The language of a file, by its name. */
export function languageOfFile(name: string): string | undefined {
  return languageOf(name.slice(name.lastIndexOf('.') + 1));
}
