/** The other hosts that this host knows by name. */

import type { AddedHost, HostRow, NewHost } from '../wire/administration';
import { Loaded, type OwnRequests } from './loaded.svelte';

interface HostList {
  hosts: HostRow[];
}

/** A connection through SSH takes a few round trips. */
const CHECK_MS = 60_000;

export class KnownHosts {
  readonly list: Loaded<HostList>;
  #client: OwnRequests;

  constructor(client: OwnRequests) {
    this.#client = client;
    this.list = new Loaded(() => client.requestOwn('x-grove/hosts/list', {}) as Promise<HostList>);
  }

  /** Connects to all hosts, or to one. */
  check(name?: string): Promise<void> {
    const params = name === undefined ? {} : { name };
    return this.list.take(this.#client.requestOwn('x-grove/hosts/check', params, CHECK_MS) as Promise<HostList>);
  }

  async add(host: NewHost): Promise<AddedHost> {
    const added = (await this.#client.requestOwn('x-grove/hosts/add', { ...host }, CHECK_MS)) as AddedHost;
    if (added.added) await this.list.load();
    return added;
  }

  async remove(name: string): Promise<void> {
    await this.#client.requestOwn('x-grove/hosts/remove', { name });
    await this.list.load();
  }
}
