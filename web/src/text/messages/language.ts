/**
 * The language of the page. Each area of the page has its texts in a file of this folder, in every language; a missing text does not compile.
 *
 *     const shell = texts({
 *       en: { back: 'Back', sessions: (count: number) => (count === 1 ? 'One session' : `${count} sessions`) },
 *       de: { back: 'Zurück', sessions: (count: number) => (count === 1 ? 'Eine Sitzung' : `${count} Sitzungen`) },
 *     });
 *
 * The language is chosen when the page is loaded, so texts are constants, and components need no subscription.
 */

export const LANGUAGES = ['en', 'de'] as const;

export type Language = (typeof LANGUAGES)[number];

/** A text, or a function that puts values into one. */
type Text = string | ((...values: never[]) => string);

const KEY = 'grove-language';

/** The language that the person chose on this device, else the browser's first one that the page has, else English. */
export const language: Language = chosen() ?? preferred(globalThis.navigator?.languages ?? []);

/** Returns the texts of an area in the language of the page. */
export function texts<T extends Record<string, Text>>(all: Record<Language, T>): T {
  return all[language];
}

/** Stores the choice of a language, or of the browser's. It counts from the next load of the page. */
export function choose(wanted: Language | undefined): void {
  if (wanted) localStorage.setItem(KEY, wanted);
  else localStorage.removeItem(KEY);
}

/** The stored choice. A browser that stores nothing has none. */
export function chosen(): Language | undefined {
  try {
    return known(localStorage.getItem(KEY) ?? '');
  } catch {
    return undefined;
  }
}

export function preferred(tags: readonly string[]): Language {
  for (const tag of tags) {
    const found = known(tag.split('-', 1)[0]!.toLowerCase());
    if (found) return found;
  }
  return 'en';
}

function known(name: string): Language | undefined {
  return LANGUAGES.find((one) => one === name);
}
