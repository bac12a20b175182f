/** Merging drafts: one prompt that is typed on several devices. Nothing that was typed is lost. */

/** The most comparisons for a merge. Longer changes are put one behind the other. */
const MOST_COMPARISONS = 4_000_000;

/**
 * The two changes of `ancestor` together, word by word: words that either deleted are deleted, and words that either
 * inserted are inserted. The result does not depend on which of them is whose, so devices that merge at the same time
 * get the same text.
 */
export function mergeDrafts(ancestor: string, mine: string, theirs: string): string {
  if (mine === theirs || theirs === ancestor) return mine;
  if (mine === ancestor) return theirs;
  const [old, one, other] = [wordsOf(ancestor), wordsOf(mine), wordsOf(theirs)];
  if (Math.max(old.length, one.length) * Math.max(old.length, other.length) > MOST_COMPARISONS) {
    return [mine, theirs].sort().join('\n');
  }
  const changes = [changesOf(old, one), changesOf(old, other)] as const;
  const merged = old.flatMap((word, at) => [
    ...together(changes[0].before[at]!, changes[1].before[at]!),
    ...(changes[0].keeps[at] && changes[1].keeps[at] ? [word] : []),
  ]);
  return [...merged, ...together(changes[0].before[old.length]!, changes[1].before[old.length]!)].join('');
}

/** The position of a caret after a text around it was replaced. */
export function caretAfter(before: string, after: string, caret: number): number {
  const shorter = Math.min(before.length, after.length);
  let from = 0;
  while (from < shorter && before[from] === after[from]) from++;
  let same = 0;
  while (same < shorter - from && before.at(-1 - same) === after.at(-1 - same)) same++;
  if (caret <= from) return caret;
  return caret >= before.length - same ? caret + after.length - before.length : after.length - same;
}

/** Words and the space between them. */
function wordsOf(text: string): string[] {
  return text.match(/\s+|\S+/g) ?? [];
}

interface Changes {
  /** Whether each old word is still there. */
  keeps: boolean[];
  /** The words inserted before each old word, and at the end. */
  before: string[][];
}

function changesOf(old: string[], now: string[]): Changes {
  const keeps = old.map(() => false);
  const before: string[][] = [...old, ''].map(() => []);
  let at = 0;
  for (const [oldAt, nowAt] of [...common(old, now), [old.length, now.length] as const]) {
    // Of inserted and deleted words at one place, the inserted ones come last.
    before[oldAt]!.push(...now.slice(at, nowAt));
    at = nowAt + 1;
    if (oldAt < old.length) keeps[oldAt] = true;
  }
  return { keeps, before };
}

/** Two lists of inserted words as one, in which words of both come once. */
function together(one: string[], other: string[]): string[] {
  // The order of the two must not count.
  const [first, second] = one.join('') <= other.join('') ? [one, other] : [other, one];
  const merged: string[] = [];
  let [a, b] = [0, 0];
  // Space alone is nothing in common: it would mix the words of two sentences.
  const both = common(first, second).filter(([at]) => !isSpace(first[at]!));
  for (const [at, otherAt] of [...both, [first.length, second.length] as const]) {
    merged.push(...apart(first.slice(a, at), second.slice(b, otherAt)));
    if (at < first.length) merged.push(first[at]!);
    [a, b] = [at + 1, otherAt + 1];
  }
  return merged;
}

/** Words of two people, which have nothing in common. */
function apart(left: string[], right: string[]): string[] {
  if (right.every(isSpace)) return left.length > 0 ? left : right;
  if (left.every(isSpace)) return right;
  const touch = !isSpace(left.at(-1)!) && !isSpace(right[0]!);
  return [...left, ...(touch ? ['\n'] : []), ...right];
}

function isSpace(word: string): boolean {
  return word.trim() === '';
}

/** The positions of a longest list of words that both lists have, in order. */
function common(one: string[], other: string[]): (readonly [number, number])[] {
  // lengths[i][j]: of the longest list in one[i..] and other[j..].
  const width = other.length + 1;
  const lengths = new Uint32Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        one[i] === other[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
    }
  }
  const found: (readonly [number, number])[] = [];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) found.push([i++, j++]);
    else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i++;
    else j++;
  }
  return found;
}

/** Returns whether a text has every word of another one, in order. */
function includesWords(text: string, words: string): boolean {
  const all = wordsOf(text);
  let at = 0;
  for (const word of wordsOf(words)) {
    at = all.indexOf(word, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

/** The draft of one device beside that of the host. */
export class DraftMerge {
  text: string;
  /** The text that this device's and the others' changes have in common. */
  ancestor: string;
  #heard: string;
  /** The text on its way to the host. */
  #sent: string | undefined;
  /** The text that the host got last from here. */
  #last: string | undefined;

  constructor(text = '', ancestor = '') {
    this.text = text;
    this.ancestor = ancestor;
    this.#heard = ancestor;
  }

  /** True if the host does not have the text. */
  get isUnsent(): boolean {
    return this.text !== (this.#sent ?? this.#heard);
  }

  /** The text is about to be sent. */
  send(): string {
    this.#sent = this.#last = this.text;
    return this.text;
  }

  /** The host's draft, which may be this device's own. Returns whether the text has changed. */
  hear(text: string): boolean {
    if (text === this.#heard && this.#sent === undefined) return false;
    const isOwn = text === this.#sent;
    this.#heard = text;
    this.#sent = undefined;
    if (isOwn) return false;
    // The other device has seen the newest text of this one.
    if (this.#last !== undefined && includesWords(text, this.#last)) this.ancestor = this.#last;
    const merged = mergeDrafts(this.ancestor, this.text, text);
    const changed = merged !== this.text;
    this.ancestor = text;
    this.text = merged;
    return changed;
  }

  /** Nobody typed for a while, so every device has seen the host's text. */
  settle(): void {
    if (!this.isUnsent) this.ancestor = this.text;
  }
}
