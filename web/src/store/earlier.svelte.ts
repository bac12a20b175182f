/** The turns of a chat before those that are loaded: fetched window by window, one request at a time. */

import type { ChannelStore } from './channel.svelte';
import type { Host } from './host.svelte';

/** After a failure the next attempt waits for the reader. */
export class EarlierTurns {
  loading = $state(false);
  problem = $state<string | undefined>();

  #host: Host;
  #chat: ChannelStore<'chat'>;

  constructor(host: Host, chat: ChannelStore<'chat'>) {
    this.#host = host;
    this.#chat = chat;
  }

  get hasMore(): boolean {
    return this.#chat.state?.turnsNextCursor != null;
  }

  /** Loads one window, and returns whether it came. */
  async load(): Promise<boolean> {
    const cursor = this.#chat.state?.turnsNextCursor;
    if (cursor == null || this.loading) return false;
    this.loading = true;
    this.problem = undefined;
    try {
      await this.#host.loadEarlierTurns(this.#chat.uri, cursor);
      await this.#changed(cursor);
      return this.#chat.state?.turnsNextCursor !== cursor;
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      return false;
    } finally {
      this.loading = false;
    }
  }

  /** Loads windows until `done` returns true, nothing is left, or something fails. Returns whether it is done. */
  async loadUntil(done: () => boolean): Promise<boolean> {
    while (!done()) {
      // The reader may have come near to the beginning meanwhile.
      if (this.loading) await nextFrame();
      else if (!(await this.load())) return done();
    }
    return true;
  }

  /** The answer comes after the turns, and the state is shown with the next frame. */
  async #changed(cursor: string): Promise<void> {
    for (let frame = 0; frame < MOST_FRAMES && this.#chat.state?.turnsNextCursor === cursor; frame++) await nextFrame();
  }
}

const MOST_FRAMES = 60;

function nextFrame(): Promise<void> {
  return new Promise((resolve) => {
    // A hidden page gets no animation frames.
    if (document.hidden) setTimeout(resolve, 50);
    else requestAnimationFrame(() => resolve());
  });
}
