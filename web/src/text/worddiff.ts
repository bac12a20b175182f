/** The words that differ between two texts. */

import { compare } from './diff';

/** A part of a text, which the other text has too or not. */
export interface Passage {
  text: string;
  isSame: boolean;
}

/** Longer texts are compared by lines. */
const MOST_WORDS = 1_500;

/** The two texts in passages. Joined, they are the texts again. */
export function differences(left: string, right: string): { left: Passage[]; right: Passage[] } {
  let a = words(left);
  let b = words(right);
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) {
    a = lines(left);
    b = lines(right);
  }
  const found = { left: [] as Passage[], right: [] as Passage[] };
  for (const { kind, before, after } of compare(a, b)) {
    if (before !== undefined) add(found.left, a[before]!, kind === 'same');
    if (after !== undefined) add(found.right, b[after]!, kind === 'same');
  }
  return found;
}

/** Whether so little of a text is on both sides that marking words says nothing. */
export function isOther(passages: readonly Passage[]): boolean {
  const length = (all: readonly Passage[]): number => all.reduce((sum, { text }) => sum + text.trim().length, 0);
  return length(passages.filter(({ isSame }) => isSame)) < length(passages) / 5;
}

function add(passages: Passage[], text: string, isSame: boolean): void {
  const last = passages.at(-1);
  if (last?.isSame === isSame) last.text += text;
  else passages.push({ text, isSame });
}

/** Words with the space after them, so that a change of a sentence is not marked in stripes. */
function words(text: string): string[] {
  return text.match(/\S+\s*|\s+/g) ?? [];
}

function lines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+/g) ?? [];
}
