/** An open channel for components: its state changes at most once per frame. */

import type { Channel, Client } from '../protocol/client';
import type { PendingAction } from '../state/reconcile';
import type { States } from '../state/reducers';
import type { Uri } from '../wire/protocol';
import type { Action } from '../wire/types';
import { onNextFrame } from './frame';

export class ChannelStore<K extends keyof States> {
  readonly uri: Uri;
  // Raw: states are never changed in place, so the same object need not be drawn again.
  state = $state.raw<States[K] | undefined>();
  pending = $state.raw<readonly PendingAction[]>([]);
  problem = $state.raw<string | undefined>();

  #client: Client;
  #channel: Channel<K>;
  #closed = false;

  constructor(client: Client, kind: K, uri: Uri) {
    this.uri = uri;
    this.#client = client;
    const publish = (): void => this.#publish();
    this.#channel = client.open(kind, uri, () => onNextFrame(publish));
    this.#publish();
  }

  dispatch(action: Action): number {
    return this.#client.dispatch(this.uri, action);
  }

  close(): void {
    this.#closed = true;
    this.#channel.close();
  }

  #publish(): void {
    if (this.#closed) return;
    this.state = this.#channel.state;
    this.pending = this.#channel.pending;
    this.problem = this.#channel.problem;
  }
}
