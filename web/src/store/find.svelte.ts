/** Matches of a text in the loaded turns of a chat. */

import { occurrences, searchText } from '../text/turns';
import type { ActiveTurn, Turn } from '../wire/types';

/** One occurrence: the how many-th in its turn. */
export interface Match {
  turn: string;
  nth: number;
  /** The number of occurrences in its turn. */
  all: number;
}

/** More matches are not counted: a person refines the search. */
export const MOST_MATCHES = 2_000;

/** The time after which the search lets the page do other work. */
const SLICE_MS = 8;

export class Find {
  query = $state('');
  matches = $state.raw<readonly Match[]>([]);
  /** The index of the current match; -1 if there is none. */
  at = $state(-1);
  turns = $state(0);

  #run = 0;

  get current(): Match | undefined {
    return this.matches[this.at];
  }

  get isFull(): boolean {
    return this.matches.length >= MOST_MATCHES;
  }

  /** Searches from the newest turn on. The current match stays if it still is one. */
  async search(turns: readonly (Turn | ActiveTurn)[], query: string): Promise<void> {
    const run = ++this.#run;
    const before = query === this.query ? this.current : undefined;
    this.query = query;
    const wanted = query.trim().toLowerCase();
    const found: Match[][] = [];
    let count = 0;
    let since = performance.now();
    for (let n = turns.length - 1; wanted !== '' && n >= 0 && count < MOST_MATCHES; n--) {
      const turn = turns[n]!;
      const here = occurrences(searchText(turn), wanted, MOST_MATCHES - count);
      if (here > 0) found.push(Array.from({ length: here }, (_, nth) => ({ turn: turn.id, nth, all: here })));
      count += here;
      if (performance.now() - since < SLICE_MS) continue;
      await new Promise((resolve) => setTimeout(resolve));
      if (run !== this.#run) return;
      since = performance.now();
    }
    this.turns = found.length;
    this.matches = found.reverse().flat();
    const same = before ? this.matches.findIndex((m) => m.turn === before.turn && m.nth === before.nth) : -1;
    this.at = same >= 0 ? same : this.matches.length - 1;
  }

  step(by: number): void {
    const count = this.matches.length;
    if (count > 0) this.at = (this.at + by + count) % count;
  }

  clear(): void {
    this.#run++;
    this.query = '';
    this.matches = [];
    this.at = -1;
    this.turns = 0;
  }
}
