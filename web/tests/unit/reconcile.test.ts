import { describe, expect, it } from 'vitest';
import { begin, dispatch, receive, type Reconciled, replace, settle } from '../../src/state/reconcile';
import type { Reducer } from '../../src/state/reducers';
import type { ActionEnvelope, Action } from '../../src/wire/types';

/** A state that shows in which order actions were applied. */
const reduce: Reducer<string[]> = (state, action) => [...state, (action as unknown as { name: string }).name];
const action = (name: string): Action => ({ type: 'session/titleChanged', title: name, name }) as Action;
const envelope = (serverSeq: number, name: string, more: Partial<ActionEnvelope> = {}): ActionEnvelope => ({
  channel: 'ahp-session:/1',
  serverSeq,
  action: action(name),
  ...more,
});
const mine = (clientSeq: number): Partial<ActionEnvelope> => ({ origin: { clientId: 'me', clientSeq } });

const start = (): Reconciled<string[]> => begin({ state: ['snapshot'], fromSeq: 10 });

describe('reconciliation', () => {
  it('shows own actions before the host has answered', () => {
    const state = dispatch(start(), { clientSeq: 1, action: action('mine') }, reduce);
    expect(state.optimistic).toEqual(['snapshot', 'mine']);
    expect(state.confirmed).toEqual(['snapshot']);
  });

  it('confirms an own action that is echoed', () => {
    const pending = dispatch(start(), { clientSeq: 1, action: action('mine') }, reduce);
    const { state, answered } = receive(pending, envelope(11, 'mine', mine(1)), 'me', reduce);
    expect(state).toMatchObject({ confirmed: ['snapshot', 'mine'], optimistic: ['snapshot', 'mine'], pending: [] });
    expect(answered?.clientSeq).toBe(1);
  });

  it('puts what others did before what is pending', () => {
    const pending = dispatch(start(), { clientSeq: 1, action: action('mine') }, reduce);
    const { state } = receive(pending, envelope(11, 'theirs'), 'me', reduce);
    expect(state.confirmed).toEqual(['snapshot', 'theirs']);
    expect(state.optimistic).toEqual(['snapshot', 'theirs', 'mine']);
  });

  it('takes another client with the same number for somebody else', () => {
    const pending = dispatch(start(), { clientSeq: 1, action: action('mine') }, reduce);
    const other = envelope(11, 'theirs', { origin: { clientId: 'you', clientSeq: 1 } });
    expect(receive(pending, other, 'me', reduce).state.pending).toHaveLength(1);
  });

  it('takes back what the host rejects, and keeps the rest', () => {
    let state = dispatch(start(), { clientSeq: 1, action: action('bad') }, reduce);
    state = dispatch(state, { clientSeq: 2, action: action('good') }, reduce);
    const rejected = receive(state, envelope(10, 'bad', { ...mine(1), rejectionReason: 'no' }), 'me', reduce);
    expect(rejected.state).toMatchObject({ confirmed: ['snapshot'], optimistic: ['snapshot', 'good'], serverSeq: 10 });
    expect(rejected.answered?.clientSeq).toBe(1);
  });

  it('leaves out what it has already', () => {
    const once = receive(start(), envelope(11, 'a'), 'me', reduce).state;
    expect(receive(once, envelope(11, 'a'), 'me', reduce).state).toBe(once);
    expect(receive(once, envelope(9, 'old'), 'me', reduce).state).toBe(once);
  });

  it('takes an own action for answered even where a snapshot had it already', () => {
    const pending = dispatch(start(), { clientSeq: 1, action: action('mine') }, reduce);
    const state = replace(pending, { state: ['later', 'mine'], fromSeq: 20 }, reduce);
    expect(state.optimistic).toEqual(['later', 'mine', 'mine']);
    const echoed = receive(state, envelope(15, 'mine', mine(1)), 'me', reduce).state;
    expect(echoed).toMatchObject({ confirmed: ['later', 'mine'], optimistic: ['later', 'mine'], pending: [] });
  });

  it('gives up what is pending when asked to', () => {
    const state = dispatch(start(), { clientSeq: 1, action: action('mine') }, reduce);
    expect(settle(state)).toMatchObject({ optimistic: ['snapshot'], pending: [] });
  });
});
