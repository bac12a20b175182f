/** A whole text in colours, line by line, for views that draw only some of its lines. */

import { type CodeToken, MOST_CODE_CHARACTERS, reader } from './highlight';
import { languageOf } from './languages';

export type TokenLine = CodeToken[];

/** The time for which lines are read at once; between them the page can do something else. */
const MOST_MS = 8;

/** The language of a file, by its ending or its whole name; undefined if its lines are not coloured. */
export function languageOfFile(name: string): string | undefined {
  return languageOf(name.slice(name.lastIndexOf('.') + 1));
}

/** The lines of a text as tokens. A long text has no colours: each line is one token. */
export async function coloured(code: string, language: string): Promise<TokenLine[]> {
  if (code.length > MOST_CODE_CHARACTERS) {
    return code.split('\n').map((text) => (text ? [{ text, class: '' }] : []));
  }
  const next = await reader(code, language);
  const lines: TokenLine[] = [];
  let begun = performance.now();
  for (let found = next(); found; found = next()) {
    lines.push(...found);
    if (performance.now() - begun < MOST_MS) continue;
    await new Promise((resolve) => setTimeout(resolve, 0));
    begun = performance.now();
  }
  return lines;
}
