/** Data of the host that is fetched on request: its newest value, and the reason why there is none. */

export class Loaded<T> {
  value = $state.raw<T | undefined>();
  problem = $state<string | undefined>();
  busy = $state(false);
  #ask: () => Promise<T>;
  #newest = 0;

  constructor(ask: () => Promise<T>) {
    this.#ask = ask;
  }

  /** Fetches it again. Of several requests the last one counts. */
  load(): Promise<void> {
    return this.take(this.#ask());
  }

  /** Takes the answer to another request that has the same result. An earlier value stays after a failure. */
  async take(answer: Promise<T>): Promise<void> {
    const turn = ++this.#newest;
    this.busy = true;
    try {
      const value = await answer;
      if (turn !== this.#newest) return;
      this.value = value;
      this.problem = undefined;
    } catch (error) {
      if (turn === this.#newest) this.problem = messageOf(error);
    } finally {
      if (turn === this.#newest) this.busy = false;
    }
  }
}

/** Calls a function once the page is connected, and after each reconnection, until the result is called. */
export function onConnection(
  host: { status: { kind: string }; onConnected: Set<() => void> },
  load: () => void,
): () => void {
  host.onConnected.add(load);
  if (host.status.kind === 'online') load();
  return () => host.onConnected.delete(load);
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The part of a client that these stores use. */
export interface OwnRequests {
  requestOwn(method: `x-grove/${string}`, params: Record<string, unknown>, patience?: number): Promise<unknown>;
}
