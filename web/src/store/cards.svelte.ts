/** The cards that wait for an answer. Keys answer the oldest one, after it was announced. */

import type { Notices } from './notices.svelte';

export interface Card {
  /** The text for screen readers. */
  announcement: string;
  /** Handles a key. Returns whether it did. */
  press(event: KeyboardEvent): boolean;
  /** The element that has the focus while keys answer the card. */
  element: HTMLElement | undefined;
}

/** The time from a card's announcement until it takes keys: a person may be typing when it appears. */
export const SETTLING_MS = 500;

export class Cards {
  /** The card that takes keys. */
  current = $state.raw<Card | undefined>();
  /** Where cards of several sessions are shown, keys answer only the card that has the focus. */
  needsFocus = $state(false);
  #waiting: Card[] = [];
  #notices: Notices;
  #settled = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(notices: Notices) {
    this.#notices = notices;
  }

  /** Adds a card, and returns the function that removes it. */
  add(card: Card): () => void {
    this.#waiting.push(card);
    this.#next();
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== card);
      this.#next();
    };
  }

  /** Moves the focus to the card that takes keys. Returns whether there is one. */
  focus(): boolean {
    this.current?.element?.focus();
    return this.current !== undefined;
  }

  /** Handles a key of the page. */
  press = (event: KeyboardEvent): void => {
    const card = this.needsFocus ? this.#focused() : this.current;
    if (!card || !this.#settled || event.defaultPrevented || !isForCards(event)) return;
    const { element } = card;
    if (element && !isInView(element)) {
      // Nobody answers what cannot be read: the key shows the card.
      if (!/^[a-z0-9]$/i.test(event.key)) return;
      element.scrollIntoView({ block: 'nearest' });
      element.focus();
    } else if (!card.press(event)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  #focused(): Card | undefined {
    return this.#waiting.find(({ element }) => element?.contains(document.activeElement));
  }

  #next(): void {
    const first = this.#waiting[0];
    if (first === this.current) return;
    this.current = first;
    this.#settled = false;
    clearTimeout(this.#timer);
    if (!first) return;
    this.#notices.say(first.announcement);
    this.#timer = setTimeout(() => (this.#settled = true), SETTLING_MS);
  }
}

const NO_TEXT = ['button', 'checkbox', 'radio', 'submit', 'reset', 'file', 'range', 'color', 'image'];

/** Returns whether an element takes typed text, or letters that choose something. */
export function takesText(element: Element | null): boolean {
  if (!element) return false;
  if (element instanceof HTMLInputElement) return !NO_TEXT.includes(element.type);
  if (element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement) return true;
  return element instanceof HTMLElement && element.isContentEditable;
}

function isInView(element: HTMLElement): boolean {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom >= 0 && top <= innerHeight;
}

function isForCards(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return false;
  const focused = document.activeElement;
  // Lists and menus have keys of their own.
  if (takesText(focused) || focused?.closest('nav, [role="listbox"], [role="menu"]')) return false;
  return document.querySelector('dialog[open]') === null;
}
