/**
 * Write-ahead with reconciliation, for one channel.
 *
 * `confirmed` is what the host said, `pending` what was dispatched here and not yet answered, and `optimistic` the one
 * with the other on top: what is shown. The host's order wins: whatever it says is applied to `confirmed`, and what is
 * pending is applied again on top of that.
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
  /** The number of the last thing from the host that `confirmed` holds. */
  readonly serverSeq: number;
}

/** What an envelope meant for this client's own actions. */
export type Received<S> = {
  state: Reconciled<S>;
  /** This client's action that it answers. */
  answered?: PendingAction;
};

type Given = Pick<Snapshot, 'fromSeq'> & { state: unknown };

export function begin<S>(snapshot: Given): Reconciled<S> {
  const confirmed = snapshot.state as S;
  return { confirmed, pending: [], optimistic: confirmed, serverSeq: snapshot.fromSeq };
}

/** The host's state afresh. What is pending still is. */
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
  // Replays overlap with what is there already, and a rejection changes nothing and may have no number of its own.
  const applies = envelope.rejectionReason == null && envelope.serverSeq > state.serverSeq;
  if (!applies && !answered) return { state };

  const pending = answered ? state.pending.filter((p) => p !== answered) : state.pending;
  const confirmed = applies ? reduce(state.confirmed, envelope.action) : state.confirmed;
  const serverSeq = applies ? envelope.serverSeq : state.serverSeq;
  return { state: { confirmed, pending, optimistic: replay(confirmed, pending, reduce), serverSeq }, answered };
}

/** Gives up what is pending, as after a reconnect: whoever called decides what to dispatch again. */
export function settle<S>(state: Reconciled<S>): Reconciled<S> {
  return state.pending.length === 0 ? state : { ...state, pending: [], optimistic: state.confirmed };
}

function replay<S>(confirmed: S, pending: readonly PendingAction[], reduce: Reducer<S>): S {
  return pending.reduce((state, { action }) => reduce(state, action), confirmed);
}
