/** Fuzzy search: the letters of a query in their order, and how well they fit. */

/**
 * How well a text fits, higher is better; undefined if a letter is missing. Letters at the beginning of words and letters
 * that follow each other count more, so that `ns` finds "New session" first.
 */
export function score(text: string, query: string): number | undefined {
  const letters = [...query.toLowerCase()].filter((letter) => letter.trim() !== '');
  if (letters.length === 0) return 0;
  const whole = text.toLowerCase();
  const wanted = query.trim().toLowerCase();
  const begins = phraseStart(whole, wanted);
  if (begins >= 0) return 1000 - Math.min(begins, 400) - whole.length / 1000;
  // Two letters in the middle of a word are chance; more of them are meant.
  if (wanted.length >= 3 && whole.includes(wanted)) return 500 - whole.length / 1000;
  let total = 0;
  let position = -1;
  for (const letter of letters) {
    const starts = wordStart(whole, letter, position + 1);
    const next = whole.indexOf(letter, position + 1);
    if (next < 0) return undefined;
    // A word's beginning is better than a letter in between, unless that one follows directly.
    const chosen = next === position + 1 || starts < 0 ? next : starts;
    total += chosen === position + 1 ? 8 : chosen === starts ? 6 : 1;
    position = chosen;
  }
  return total - whole.length / 1000;
}

/** Where a phrase begins at the beginning of a word. */
const phraseStart = (text: string, phrase: string): number => wordStart(text, phrase, 0);

function wordStart(text: string, part: string, from: number): number {
  for (let at = text.indexOf(part, from); at >= 0; at = text.indexOf(part, at + 1)) {
    if (at === 0 || /[\s\-_/.:]/.test(text[at - 1]!)) return at;
  }
  return -1;
}

/** The best fitting items, best first. Those that fit equally keep their order. */
export function search<T>(items: readonly T[], query: string, textOf: (item: T) => string, most: number): T[] {
  const scored = items.flatMap((item, order) => {
    const found = score(textOf(item), query);
    return found === undefined ? [] : [{ item, order, found }];
  });
  scored.sort((a, b) => b.found - a.found || a.order - b.order);
  return scored.slice(0, most).map(({ item }) => item);
}
