/** The page's reducers and reconciliation match the host's: both run the vectors that the host's tests write. */

import { describe, expect, it } from 'vitest';
import { begin, dispatch, type PendingAction, receive, type Reconciled, replace } from '../../src/state/reconcile';
import { type Reducer, reducers, type States } from '../../src/state/reducers';
import type { ActionEnvelope, Snapshot, Action } from '../../src/wire/types';
import { frozen, normal, vectors } from './support';

type ReducerVector = {
  name: string;
  reducer: keyof States;
  initial: unknown;
  actions: Action[];
  expected: unknown;
};

type ReconcileVector = {
  name: string;
  /** The client whose actions are own. */
  clientId?: string;
  /** The sequence number of the initial state. */
  fromSeq?: number;
  /** Derived from the state if it is missing. */
  reducer?: keyof States;
  initial: unknown;
  steps: ({ dispatch: PendingAction } | { envelope: ActionEnvelope } | { snapshot: Snapshot })[];
  expected: { confirmed: unknown; optimistic: unknown; pending: number[] };
};

describe('reducers agree with the host', () => {
  const cases = vectors<ReducerVector>('reducers.json');
  if (!cases) return it.skip('vectors/reducers.json is not there', () => {});
  it.each(cases)('$name', ({ reducer, initial, actions, expected }) => {
    const reduce = reducers[reducer] as Reducer<unknown>;
    const reached = actions.reduce((state, action) => frozen(reduce(state, frozen(action))), frozen(initial));
    expect(normal(reached)).toEqual(normal(expected));
  });
});

describe('reconciliation agrees with the host', () => {
  const cases = vectors<ReconcileVector>('reconcile.json');
  if (!cases) return it.skip('vectors/reconcile.json is not there', () => {});
  it.each(cases)('$name', ({ clientId = 'me', fromSeq = 0, reducer, initial, steps, expected }) => {
    const reduce = reducers[reducer ?? kindOf(initial)] as Reducer<unknown>;
    let state: Reconciled<unknown> = begin({ state: frozen(initial), fromSeq });
    for (const step of steps) {
      if ('dispatch' in step) state = dispatch(state, step.dispatch, reduce);
      else if ('envelope' in step) state = receive(state, step.envelope, clientId, reduce).state;
      else state = replace(state, step.snapshot, reduce);
    }
    expect(normal(state.confirmed)).toEqual(normal(expected.confirmed));
    expect(normal(state.optimistic)).toEqual(normal(expected.optimistic));
    expect(state.pending.map((p) => p.clientSeq)).toEqual(expected.pending);
  });
});

function kindOf(state: unknown): keyof States {
  const fields = state as object;
  if ('agents' in fields) return 'root';
  return 'lifecycle' in fields ? 'session' : 'chat';
}
