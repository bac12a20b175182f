/** The other clients of an open session, kept current by the host's notifications. */

import { type Presence, presenceOf } from '../state/presence';
import type { Uri } from '../wire/protocol';
import type { Host } from './host.svelte';

export class PresenceStore {
  presence = $state.raw<Presence>({ clients: [], more: 0 });

  #host: Host;
  #uri: Uri;
  #ask = (): void => void this.#request();
  #hear = (channel: unknown, list: unknown): void => {
    if (channel === this.#uri) this.#take(list);
  };

  /** The session's channel must be open before: the host tells changes to subscribers only. */
  constructor(host: Host, uri: Uri) {
    this.#host = host;
    this.#uri = uri;
    host.onConnected.add(this.#ask);
    host.onPresence.add(this.#hear);
    this.#ask();
  }

  close(): void {
    this.#host.onConnected.delete(this.#ask);
    this.#host.onPresence.delete(this.#hear);
  }

  async #request(): Promise<void> {
    try {
      this.#take(await this.#host.client.requestOwn('x-grove/presence', { channel: this.#uri, watch: true }));
    } catch {
      // The connection is gone, and the next one asks again; or the host has no such list.
      this.#take(undefined);
    }
  }

  #take(list: unknown): void {
    const { clients, more } = presenceOf(list);
    this.presence = { clients: clients.filter((client) => client.id !== this.#host.client.clientId), more };
  }
}
