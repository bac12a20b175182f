/** The comments on lines that a person collects for an agent. They survive a reload of the tab, and nothing more. */

import { object } from '../state/meta';
import { randomId } from '../protocol/random';
import { type LineComment, MOST_COMMENT_CHARACTERS, MOST_COMMENTS } from '../text/linecomments';
import type { Uri } from '../wire/protocol';

const KEY = 'grove-comments:';

export class CommentStore {
  items = $state.raw<readonly LineComment[]>([]);
  #key: string;

  constructor(chat: Uri) {
    this.#key = KEY + chat;
    this.items = read(this.#key);
  }

  get isFull(): boolean {
    return this.items.length >= MOST_COMMENTS;
  }

  add(comment: Omit<LineComment, 'id'>): void {
    if (this.isFull) return;
    this.#set([...this.items, { ...comment, text: bounded(comment.text), id: randomId() }]);
  }

  update(id: string, text: string): void {
    this.#set(this.items.map((item) => (item.id === id ? { ...item, text: bounded(text) } : item)));
  }

  remove(id: string): void {
    this.#set(this.items.filter((item) => item.id !== id));
  }

  clear(): void {
    this.#set([]);
  }

  #set(items: LineComment[]): void {
    this.items = items;
    try {
      if (items.length > 0) sessionStorage.setItem(this.#key, JSON.stringify(items));
      else sessionStorage.removeItem(this.#key);
    } catch {
      // The browser stores nothing, or has no room: the comments stay as long as the page.
    }
  }
}

function bounded(text: string): string {
  return text.slice(0, MOST_COMMENT_CHARACTERS);
}

/** What is stored may be of another version of the page. */
function read(key: string): LineComment[] {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(key) ?? '[]');
    return Array.isArray(stored) ? stored.flatMap(commentOf).slice(0, MOST_COMMENTS) : [];
  } catch {
    return [];
  }
}

function commentOf(value: unknown): LineComment[] {
  const { id, uri, side, first, last, quote, text } = object(value) ?? {};
  if (typeof id !== 'string' || typeof uri !== 'string' || typeof text !== 'string') return [];
  if (typeof first !== 'number' || typeof last !== 'number' || !Array.isArray(quote)) return [];
  const lines = quote.filter((line) => typeof line === 'string');
  return [{ id, uri, side: side === 'before' ? 'before' : 'after', first, last, quote: lines, text }];
}

/** The stores that stay in memory. The comments of the others are read again. */
const MOST_STORES = 50;
const stores = new Map<Uri, CommentStore>();

/** The comments of a chat: one store for all views of it. */
export function commentsOf(chat: Uri): CommentStore {
  let store = stores.get(chat);
  if (!store) {
    stores.set(chat, (store = new CommentStore(chat)));
    for (const oldest of stores.keys()) {
      if (stores.size <= MOST_STORES) break;
      stores.delete(oldest);
    }
  }
  return store;
}

/** Deletes all comments of this tab, as when its key is forgotten. */
export function forgetComments(): void {
  stores.clear();
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(KEY)) sessionStorage.removeItem(key);
  } catch {
    // The browser stores nothing.
  }
}
