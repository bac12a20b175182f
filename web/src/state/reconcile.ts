/**
 * Write-ahead with reconciliation, for one channel.
 *
 * `confirmed` is the host's state, `pending` are the actions dispatched here without an answer, and `optimistic`, which
 * is shown, is the former with the latter applied. The host's order wins: its actions are applied to `confirmed`, and
 * the pending ones are applied again on top of that.
 */

import type { ActionEnvelope, Snapshot, Action } from '../wire/types';
import type { Reducer } from './reducers';

export interface PendingAction {
  clientSeq: number;
  action: Action;
}

export interface Reconciled<S> {
  readonly confirmed: S;
  readonly pending: readonly PendingAction[];
  readonly optimistic: S;
  /** The sequence number of `confirmed`. */
  readonly serverSeq: number;
}

/** The effect of an envelope on this client's own actions. */
export type Received<S> = {
  state: Reconciled<S>;
  /** The action of this client that it answers. */
  answered?: PendingAction;
};

type Given = Pick<Snapshot, 'fromSeq'> & { state: unknown };

export function begin<S>(snapshot: Given): Reconciled<S> {
  const confirmed = snapshot.state as S;
  return { confirmed, pending: [], optimistic: confirmed, serverSeq: snapshot.fromSeq };
}

/** Replaces the host's state. Pending actions stay pending. */
export function replace<S>(state: Reconciled<S>, snapshot: Given, reduce: Reducer<S>): Reconciled<S> {
  const { pending } = state;
  const confirmed = snapshot.state as S;
  return { confirmed, pending, optimistic: replay(confirmed, pending, reduce), serverSeq: snapshot.fromSeq };
}

export function dispatch<S>(state: Reconciled<S>, pending: PendingAction, reduce: Reducer<S>): Reconciled<S> {
  return {
    ...state,
    pending: [...state.pending, pending],
    optimistic: reduce(state.optimistic, pending.action),
  };
}

export function receive<S>(
  state: Reconciled<S>,
  envelope: ActionEnvelope,
  clientId: string,
  reduce: Reducer<S>,
): Received<S> {
  const mine = envelope.origin?.clientId === clientId ? envelope.origin.clientSeq : undefined;
  const answered = mine === undefined ? undefined : state.pending.find((p) => p.clientSeq === mine);
  // Replays overlap with the state, and a rejection changes nothing and may have no number.
  const applies = envelope.rejectionReason == null && envelope.serverSeq > state.serverSeq;
  if (!applies && !answered) return { state };

  const pending = answered ? state.pending.filter((p) => p !== answered) : state.pending;
  const confirmed = applies ? reduce(state.confirmed, envelope.action) : state.confirmed;
  const serverSeq = applies ? envelope.serverSeq : state.serverSeq;
  return { state: { confirmed, pending, optimistic: replay(confirmed, pending, reduce), serverSeq }, answered };
}

/** Drops pending actions, as after a reconnect: the caller decides which to dispatch again. */
export function settle<S>(state: Reconciled<S>): Reconciled<S> {
  return state.pending.length === 0 ? state : { ...state, pending: [], optimistic: state.confirmed };
}

function replay<S>(confirmed: S, pending: readonly PendingAction[], reduce: Reducer<S>): S {
  return pending.reduce((state, { action }) => reduce(state, action), confirmed);
}
