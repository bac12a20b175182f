/** Keys of the page. A letter is a command only where nobody types. */

/** The focus is in a field, or in a dialog with keys of its own. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof Element)) return false;
  return (
    target.closest(
      'input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable=true], dialog, [role=menu]',
    ) !== null
  );
}

/** A key without Ctrl, Alt and Meta. Shift belongs to the key. */
export function plainKey(event: KeyboardEvent): string | undefined {
  return event.ctrlKey || event.altKey || event.metaKey || event.isComposing ? undefined : event.key;
}

/** How long the second key of two may take. */
const PAIR_MS = 1_500;

/** Keys that are pressed one after the other, such as `g h`. */
export class KeyPairs {
  #first: string | undefined;
  #at = 0;

  /** The two keys, when the second one is pressed; undefined for the first, or any other key. */
  press(key: string, now: number): string | undefined {
    const first = now - this.#at < PAIR_MS ? this.#first : undefined;
    this.#first = undefined;
    if (first === 'g') return `g ${key}`;
    if (key === 'g') {
      this.#first = key;
      this.#at = now;
    }
    return undefined;
  }
}
