/** Everything that waits for a person, over all sessions and hosts. */

import type { WaitingItem } from '../state/rows';

/** How long changes are gathered before the requests are fetched. */
const GATHER_MS = 60;

export class Inbox {
  items = $state.raw<readonly WaitingItem[]>([]);
  /** Requests beyond those that the host lists. */
  further = $state(0);
  loaded = $state(false);
  /** Answered ones are hidden until the host does not list them any more. */
  #answered = $state.raw<ReadonlySet<string>>(new Set());
  #all = $state.raw<readonly WaitingItem[]>([]);

  /** The number of what waits, for the title of the tab, its icon, and notifications. */
  readonly count = $derived(this.items.length + this.further);

  #fetch: () => Promise<{ items: WaitingItem[]; more: number }>;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #round = 0;

  constructor(fetch: () => Promise<{ items: WaitingItem[]; more: number }>) {
    this.#fetch = fetch;
  }

  /** Fetches again soon: many changes cost one request. */
  touch(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.refresh();
    }, GATHER_MS);
  }

  async refresh(): Promise<void> {
    const round = ++this.#round;
    try {
      const { items, more } = await this.#fetch();
      if (round !== this.#round) return;
      const listed = new Set(items.map(keyOf));
      this.#answered = new Set([...this.#answered].filter((key) => listed.has(key)));
      this.#all = items;
      this.further = more;
      this.loaded = true;
      this.#publish();
    } catch {
      // Without a connection the last ones stay; the next handshake fetches again.
    }
  }

  /** Hides an answered request at once. */
  answered(item: WaitingItem): void {
    this.#answered = new Set([...this.#answered, keyOf(item)]);
    this.#publish();
  }

  /** Shows a request again whose answer was refused. */
  unanswered(item: WaitingItem): void {
    this.#answered = new Set([...this.#answered].filter((key) => key !== keyOf(item)));
    this.#publish();
  }

  #publish(): void {
    this.items = this.#all.filter((item) => !this.#answered.has(keyOf(item)));
  }
}

/** Names a request over all sessions. */
export const keyOf = (item: WaitingItem): string => `${item.session} ${item.id ?? ''}`;
