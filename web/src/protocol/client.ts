/**
 * The page's side of the protocol: open channels, their reconciled states, and this client's own actions.
 *
 * It is independent of the components: a callback reports the changes of a channel.
 */

import { ROOT_RESOURCE_URI, type Uri } from '../wire/protocol';
import type {
  Action,
  ActionEnvelope,
  ChatState,
  InitializeResult,
  Notifications,
  ReconnectResult,
  Requests,
  Results,
  SessionState,
  Snapshot,
} from '../wire/types';
import { begin, dispatch, type PendingAction, receive, type Reconciled, replace, settle } from '../state/reconcile';
import { type Reducer, reducers, type States } from '../state/reducers';
import { isVisibleInChat, isVisibleInSession } from '../state/visible';
import { type Access, Connection, type ConnectionOwner, type Status } from './connection';
import { NoAnswer, type Peer, RpcError } from './jsonrpc';
import { randomId } from './random';

/** The number of newest turns of a chat that are requested first. */
const TURNS_AT_FIRST = 60;

export interface Rejection {
  channel: Uri;
  action: Action;
  reason: string;
}

export interface ClientEvents {
  statusChanged(status: Status): void;
  /** The host has identified itself. */
  introduced(result: InitializeResult): void;
  /** After each handshake: data outside of channels must be fetched again. */
  connected(): void;
  notification<M extends keyof Notifications>(method: M, params: Notifications[M]): void;
  rejected(rejection: Rejection): void;
}

/** An open subscription. */
export interface Channel<K extends keyof States = keyof States> {
  readonly uri: Uri;
  readonly kind: K;
  /** The optimistic state; undefined before the first snapshot. */
  readonly state: States[K] | undefined;
  readonly pending: readonly PendingAction[];
  /** The reason why there is no state, if there is one. */
  readonly problem: string | undefined;
  close(): void;
}

interface Entry {
  uri: Uri;
  kind: keyof States;
  reduce: Reducer<unknown>;
  reconciled: Reconciled<unknown> | undefined;
  problem: string | undefined;
  /** The host sends this channel on the current connection. */
  subscribed: boolean;
  /** Actions that arrived before their snapshot. */
  held: ActionEnvelope[];
  listeners: Set<() => void>;
}

export class Client implements ConnectionOwner {
  readonly clientId: string;
  #events: ClientEvents;
  #connection: Connection;
  #peer: Peer | undefined;
  #entries = new Map<Uri, Entry>();
  /** Own actions on channels that are not open, such as answers to questions of another chat. They have no echo. */
  #elsewhere = new Map<number, { channel: Uri; action: Action; sent: boolean }>();
  #clientSeq = 0;
  #lastSeen = 0;

  constructor(access: Access, events: ClientEvents, clientId: string = randomId(), random?: () => number) {
    this.clientId = clientId;
    this.#events = events;
    this.#connection = new Connection(clientId, access, this, random);
  }

  start(): void {
    this.#connection.start();
  }

  stop(): void {
    this.#connection.stop();
  }

  retryNow(): void {
    this.#connection.retryNow();
  }

  async request<M extends keyof Requests>(method: M, params: Requests[M], patience?: number): Promise<Results[M]> {
    if (!this.#peer) throw new NoAnswer('not connected to the host');
    return this.#peer.request(method, params, patience);
  }

  /** Calls one of Grove's protocol extensions, whose types are not generated. `patience` is for those that take long. */
  async requestOwn(method: `x-grove/${string}`, params: Record<string, unknown>, patience?: number): Promise<unknown> {
    return this.request(method as keyof Requests, params as never, patience);
  }

  /** Opens a channel and calls back after each possible change. Opening it again shares it. */
  open<K extends keyof States>(kind: K, uri: Uri, changed: () => void): Channel<K> {
    let entry = this.#entries.get(uri);
    if (!entry) {
      entry = {
        uri,
        kind,
        reduce: reducers[kind] as Reducer<unknown>,
        reconciled: undefined,
        problem: undefined,
        subscribed: false,
        held: [],
        listeners: new Set(),
      };
      this.#entries.set(uri, entry);
      void this.#subscribe(entry);
    }
    const opened = entry;
    const listener = (): void => changed();
    opened.listeners.add(listener);
    return {
      uri,
      kind,
      get state() {
        return opened.reconciled?.optimistic as States[K] | undefined;
      },
      get pending() {
        return opened.reconciled?.pending ?? [];
      },
      get problem() {
        return opened.problem;
      },
      close: () => {
        opened.listeners.delete(listener);
        if (opened.listeners.size > 0 || this.#entries.get(uri) !== opened) return;
        this.#entries.delete(uri);
        if (opened.subscribed) this.#peer?.notify('unsubscribe', { channel: uri });
      },
    };
  }

  /** Applies an action locally at once, and dispatches it to the host. Without a connection it is sent later. */
  dispatch(channel: Uri, action: Action): number {
    const clientSeq = ++this.#clientSeq;
    const entry = this.#entries.get(channel);
    if (entry?.reconciled) {
      entry.reconciled = dispatch(entry.reconciled, { clientSeq, action }, entry.reduce);
      this.#changed(entry);
    } else {
      this.#elsewhere.set(clientSeq, { channel, action, sent: this.#peer !== undefined });
    }
    this.#peer?.notify('dispatchAction', { channel, clientSeq, action });
    return clientSeq;
  }

  // ---- Callbacks of the connection --------------------------------------------------------------------------------

  subscriptions(): Uri[] {
    const loaded = [...this.#entries.values()].filter((entry) => entry.reconciled && !entry.problem);
    return loaded.length > 0 ? loaded.map((entry) => entry.uri) : [ROOT_RESOURCE_URI];
  }

  lastSeenServerSeq(): number {
    return this.#lastSeen;
  }

  initialized(result: InitializeResult): void {
    this.#lastSeen = result.serverSeq;
    this.#adoptAll(result.snapshots);
    this.#events.introduced(result);
  }

  resumed(result: ReconnectResult): void {
    if (result.type === 'replay') {
      for (const entry of this.#entries.values()) {
        entry.subscribed = entry.reconciled !== undefined && !result.missing.includes(entry.uri);
        if (!entry.subscribed && entry.reconciled) this.#fail(entry, 'The host has removed this.');
      }
      for (const envelope of result.actions) this.#receive(envelope);
      for (const entry of this.#entries.values()) this.#dispatchAgain(entry, entry.reconciled?.confirmed);
    } else {
      this.#adoptAll(result.snapshots);
      const reached = result.snapshots.map((snapshot) => snapshot.fromSeq);
      this.#lastSeen = Math.max(this.#lastSeen, Math.min(...reached, Number.MAX_SAFE_INTEGER));
    }
  }

  ready(peer: Peer): void {
    this.#peer = peer;
    for (const entry of this.#entries.values()) {
      for (const { clientSeq, action } of entry.reconciled?.pending ?? []) {
        peer.notify('dispatchAction', { channel: entry.uri, clientSeq, action });
      }
      if (!entry.subscribed) void this.#subscribe(entry);
    }
    for (const [clientSeq, own] of this.#elsewhere) {
      if (own.sent) continue;
      own.sent = true;
      peer.notify('dispatchAction', { channel: own.channel, clientSeq, action: own.action });
    }
    this.#events.connected();
  }

  lost(): void {
    this.#peer = undefined;
    for (const entry of this.#entries.values()) {
      entry.subscribed = false;
      entry.held = [];
    }
  }

  statusChanged(status: Status): void {
    this.#events.statusChanged(status);
  }

  notification<M extends keyof Notifications>(method: M, params: Notifications[M]): void {
    if (method === 'action') {
      this.#receive(params as ActionEnvelope);
    } else this.#events.notification(method, params);
  }

  // ---- Channels ---------------------------------------------------------------------------------------------------

  async #subscribe(entry: Entry): Promise<void> {
    const peer = this.#peer;
    if (!peer || entry.subscribed) return;
    entry.subscribed = true;
    try {
      const view = entry.kind === 'chat' ? { view: { turns: TURNS_AT_FIRST } } : {};
      const { snapshot } = await peer.request('subscribe', { channel: entry.uri, ...view });
      // If it was closed meanwhile, it is already unsubscribed.
      if (this.#entries.get(entry.uri) !== entry) return;
      if (snapshot) this.#adopt(entry, snapshot);
      else this.#fail(entry, 'The host has nothing to show here.');
    } catch (error) {
      // Without an answer the connection is gone, and the next one subscribes again.
      if (error instanceof RpcError) this.#fail(entry, error.message);
    }
  }

  #adoptAll(snapshots: Snapshot[]): void {
    const found = new Map(snapshots.map((snapshot) => [snapshot.resource, snapshot]));
    for (const entry of this.#entries.values()) {
      const snapshot = found.get(entry.uri);
      entry.subscribed = snapshot !== undefined;
      if (snapshot) this.#adopt(entry, snapshot);
      else if (entry.reconciled) this.#fail(entry, 'The host has removed this.');
    }
  }

  #adopt(entry: Entry, snapshot: Snapshot): void {
    const before = entry.reconciled;
    entry.problem = undefined;
    entry.reconciled = before ? replace(before, snapshot, entry.reduce) : begin(snapshot);
    this.#dispatchAgain(entry, before?.confirmed);
    const held = entry.held;
    entry.held = [];
    for (const envelope of held) this.#apply(entry, envelope);
    this.#changed(entry);
  }

  /** After a reconnect it is unknown which pending actions arrived: those without a visible effect are kept. */
  #dispatchAgain(entry: Entry, before: unknown): void {
    const state = entry.reconciled;
    if (!state || state.pending.length === 0) return;
    entry.reconciled = settle(state);
    for (const pending of state.pending) {
      if (isVisible(entry, state.confirmed, before, pending.action)) continue;
      const again = { clientSeq: ++this.#clientSeq, action: pending.action };
      entry.reconciled = dispatch(entry.reconciled, again, entry.reduce);
    }
    this.#changed(entry);
  }

  #receive(envelope: ActionEnvelope): void {
    this.#lastSeen = Math.max(this.#lastSeen, envelope.serverSeq ?? 0);
    const { origin, rejectionReason } = envelope;
    if (origin?.clientId === this.clientId) {
      const elsewhere = this.#elsewhere.get(origin.clientSeq);
      this.#elsewhere.delete(origin.clientSeq);
      if (elsewhere && rejectionReason != null) {
        this.#events.rejected({ channel: elsewhere.channel, action: elsewhere.action, reason: rejectionReason });
      }
    }
    const entry = this.#entries.get(envelope.channel);
    if (!entry) return;
    if (entry.reconciled && entry.subscribed) this.#apply(entry, envelope);
    else entry.held.push(envelope);
  }

  #apply(entry: Entry, envelope: ActionEnvelope): void {
    if (!entry.reconciled) return;
    const { state, answered } = receive(entry.reconciled, envelope, this.clientId, entry.reduce);
    if (state === entry.reconciled) return;
    entry.reconciled = state;
    if (answered && envelope.rejectionReason != null) {
      this.#events.rejected({ channel: entry.uri, action: answered.action, reason: envelope.rejectionReason });
    }
    this.#changed(entry);
  }

  #fail(entry: Entry, problem: string): void {
    entry.problem = problem;
    entry.reconciled = undefined;
    this.#changed(entry);
  }

  #changed(entry: Entry): void {
    for (const listener of entry.listeners) listener();
  }
}

function isVisible(entry: Entry, state: unknown, before: unknown, action: Action): boolean {
  switch (entry.kind) {
    case 'chat':
      return isVisibleInChat(state as ChatState, before as ChatState | undefined, action);
    case 'session':
      return isVisibleInSession(state as SessionState, action);
    case 'root':
      return false;
  }
}
