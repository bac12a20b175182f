/**
 * The connection to one host for the life of the page: connects, shakes hands, detects a dead connection, and
 * reconnects.
 *
 * It knows sockets and the handshake, but not the subscriptions: those are its owner's.
 */

import { ErrorCodes, PROTOCOL_VERSIONS, ROOT_RESOURCE_URI, type Uri } from '../wire/protocol';
import type { InitializeResult, Notifications, ReconnectResult } from '../wire/types';
import { NotProven } from './access';
import { waitBefore } from './backoff';
import { Peer, RpcError, type Socket } from './jsonrpc';

export type Status =
  | { kind: 'connecting'; attempt: number }
  | { kind: 'online' }
  /** `unproven`: a program answers that did not prove to be the host. */
  | { kind: 'waiting'; attempt: number; retryAt: number; reason: string; unproven: boolean }
  /** Retrying would not help: no host ever proved that it knows the token. */
  | { kind: 'unauthorized' }
  | { kind: 'refused'; reason: string };

export interface ConnectionOwner {
  /** The resources to subscribe with the handshake. */
  subscriptions(): Uri[];
  /** The sequence number from which a `reconnect` continues. */
  lastSeenServerSeq(): number;
  /** The handshake returned new snapshots. */
  initialized(result: InitializeResult): void;
  /** The handshake returned the missed actions. */
  resumed(result: ReconnectResult): void;
  /** After either of them: requests can be sent now. */
  ready(peer: Peer): void;
  lost(): void;
  notification<M extends keyof Notifications>(method: M, params: Notifications[M]): void;
  statusChanged(status: Status): void;
}

export interface Access {
  /** Opens a socket to a host that has proved its identity. Fails with `NotProven` otherwise. */
  openSocket(): Promise<Socket>;
}

const SILENCE_MS = 20_000;
const PING_PATIENCE_MS = 10_000;
const HANDSHAKE_PATIENCE_MS = 15_000;

export class Connection {
  #owner: ConnectionOwner;
  #access: Access;
  #clientId: string;
  #random: () => number;
  #peer: Peer | undefined;
  /** The host may still know this client. */
  #known = false;
  /** This page was connected before: the token is the host's. */
  #wasOnline = false;
  #attempt = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #heartbeat: ReturnType<typeof setInterval> | undefined;
  #stopped = false;
  #busy = false;

  constructor(clientId: string, access: Access, owner: ConnectionOwner, random: () => number = Math.random) {
    this.#clientId = clientId;
    this.#access = access;
    this.#owner = owner;
    this.#random = random;
  }

  start(): void {
    void this.#connect();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#retry);
    clearInterval(this.#heartbeat);
    this.#peer?.close('stopped');
  }

  /** Retries at once, since it may work now. */
  retryNow(): void {
    if (this.#retry === undefined || this.#stopped) return;
    clearTimeout(this.#retry);
    void this.#connect();
  }

  async #connect(): Promise<void> {
    if (this.#busy || this.#stopped) return;
    this.#busy = true;
    this.#retry = undefined;
    this.#owner.statusChanged({ kind: 'connecting', attempt: this.#attempt });
    try {
      const socket = await this.#access.openSocket();
      let early: string | undefined;
      const peer = new Peer(socket, {
        notification: (method, params) => this.#owner.notification(method, params),
        closed: (reason) => {
          if (this.#peer === peer) this.#lose(reason);
          else early = reason;
        },
      });
      await this.#shakeHands(peer);
      if (early !== undefined) throw new Error(early);
      this.#peer = peer;
      this.#wasOnline = true;
      this.#attempt = 0;
      this.#busy = false;
      if (this.#stopped) return peer.close('stopped');
      this.#watch(peer);
      this.#owner.ready(peer);
      this.#owner.statusChanged({ kind: 'online' });
    } catch (error) {
      this.#busy = false;
      if (error instanceof NotProven && !this.#wasOnline) {
        this.#owner.statusChanged({ kind: 'unauthorized' });
      } else if (error instanceof RpcError && error.code === ErrorCodes.UnsupportedProtocolVersion) {
        this.#owner.statusChanged({ kind: 'refused', reason: error.message });
      } else {
        this.#wait(error instanceof Error ? error.message : String(error), error instanceof NotProven);
      }
    }
  }

  async #shakeHands(peer: Peer): Promise<void> {
    try {
      if (this.#known) {
        const resumed = await this.#reconnect(peer);
        if (resumed) return this.#owner.resumed(resumed);
      }
      const result = await peer.request(
        'initialize',
        {
          channel: ROOT_RESOURCE_URI,
          protocolVersions: PROTOCOL_VERSIONS,
          clientId: this.#clientId,
          clientInfo: { name: 'grove-web', title: 'Grove’s page' },
          initialSubscriptions: this.#owner.subscriptions(),
          locale: globalThis.navigator?.language,
        },
        HANDSHAKE_PATIENCE_MS,
      );
      this.#known = true;
      this.#owner.initialized(result);
    } catch (error) {
      peer.close('the handshake failed');
      throw error;
    }
  }

  /** Undefined if the host refuses: it no longer knows this client, so everything is requested again. */
  async #reconnect(peer: Peer): Promise<ReconnectResult | undefined> {
    try {
      const answer = await peer.request(
        'reconnect',
        {
          channel: ROOT_RESOURCE_URI,
          clientId: this.#clientId,
          lastSeenServerSeq: this.#owner.lastSeenServerSeq(),
          subscriptions: this.#owner.subscriptions(),
        },
        HANDSHAKE_PATIENCE_MS,
      );
      // A request with one number for all channels has this response.
      return answer as ReconnectResult;
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      this.#known = false;
      return undefined;
    }
  }

  #lose(reason: string): void {
    this.#peer = undefined;
    clearInterval(this.#heartbeat);
    this.#owner.lost();
    if (!this.#stopped) this.#wait(reason);
  }

  #wait(reason: string, unproven = false): void {
    const wait = waitBefore(this.#attempt, this.#random);
    this.#attempt += 1;
    this.#retry = setTimeout(() => void this.#connect(), wait);
    this.#owner.statusChanged({
      kind: 'waiting',
      attempt: this.#attempt,
      retryAt: Date.now() + wait,
      reason,
      unproven,
    });
  }

  /** Detects a dead connection: after a long silence the host is pinged, and the socket is closed without an answer. */
  #watch(peer: Peer): void {
    clearInterval(this.#heartbeat);
    this.#heartbeat = setInterval(() => {
      if (Date.now() - peer.lastHeard < SILENCE_MS) return;
      peer.request('ping', { channel: ROOT_RESOURCE_URI }, PING_PATIENCE_MS).catch((error: unknown) => {
        if (!(error instanceof RpcError)) peer.close('the host is silent');
      });
    }, SILENCE_MS);
  }
}
