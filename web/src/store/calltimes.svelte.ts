/** How long tool calls ran, as far as this page saw them begin and end: the protocol does not tell. */

import { SvelteMap } from 'svelte/reactivity';
import type { Action } from '../wire/types';

/** Past it the oldest are forgotten. */
const MOST = 1_000;

export class CallTimes {
  #began = new Map<string, number>();
  #ran = new SvelteMap<string, number>();

  ranMs(toolCallId: string): number | undefined {
    return this.#ran.get(toolCallId);
  }

  /** Takes in what the host just told. What it repeats after a reconnect has no times. */
  saw(action: Action, now: number): void {
    switch (action.type) {
      case 'chat/toolCallReady':
        if (action.confirmed) this.#begin(action.toolCallId, now);
        return;
      case 'chat/toolCallConfirmed':
        // The time that a person took to answer is not the tool's.
        if (action.approved) this.#begin(action.toolCallId, now);
        return;
      case 'chat/toolCallComplete': {
        const began = this.#began.get(action.toolCallId);
        if (began === undefined) return;
        this.#began.delete(action.toolCallId);
        bounded(this.#ran).set(action.toolCallId, now - began);
      }
    }
  }

  #begin(toolCallId: string, now: number): void {
    // A call may be told of again while it runs.
    if (!this.#began.has(toolCallId)) bounded(this.#began).set(toolCallId, now);
  }
}

function bounded(map: Map<string, number>): Map<string, number> {
  for (const oldest of map.keys()) {
    if (map.size < MOST) break;
    map.delete(oldest);
  }
  return map;
}
