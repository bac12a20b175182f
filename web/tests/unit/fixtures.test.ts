/** The reducer cases that the protocol published at 0.6, converted to 1.0. */

import { describe, expect, it } from 'vitest';
import { type Reducer, reducers, type States } from '../../src/state/reducers';
import type { Action } from '../../src/wire/types';
import { fixtures, frozen, normal } from './support';

type State = Record<string, unknown>;
type Fixture = { description: string; reducer: string; initial: State; actions: Action[]; expected: State };

/** The changes between 0.6 and 1.0, and the converted case. Undefined: the case no longer exists. */
type Change = { why: string; cases: string[]; now: (old: Fixture) => Fixture | undefined };

const expecting = (old: Fixture, expected: State): Fixture => ({ ...old, expected: { ...old.expected, ...expected } });

const CHANGES: Change[] = [
  {
    why: 'reducers have no clock: a turn start sets modifiedAt to its startedAt',
    cases: [
      '005-session-turnstarted',
      '006-turnstarted-with-queuedmessageid-removes-from-queuedmessages',
      '007-turnstarted-with-queuedmessageid-removes-last-queued-message',
      '008-turnstarted-with-queuedmessageid-removes-matching-steering-message',
      '009-turnstarted-without-queuedmessageid-does-not-touch-pending-messages',
      '075-turnstarted-clears-isread',
    ],
    now: (old) => expecting(old, { modifiedAt: (old.expected['activeTurn'] as State)['startedAt'] }),
  },
  {
    why: 'reducers have no clock: truncation and questions leave modifiedAt alone',
    cases: [
      '063-session-truncated-keeps-turns-up-to-turnid',
      '064-session-truncated-keeps-all-when-turnid-is-last',
      '065-session-truncated-keeps-only-first-when-turnid-is-first',
      '066-session-truncated-clears-all-when-turnid-omitted',
      '067-session-truncated-drops-active-turn',
      '068-session-truncated-drops-active-turn-even-when-clearing-all',
      '105-session-input-full-draft-and-complete-flow',
      '106-session-input-requested-with-drafts-status',
      '108-session-input-upsert-and-clear-answer',
      '110-session-input-completion-and-truncation-filtering',
      '234-chat-truncated-clears-turns-next-cursor-when-clearing-all',
      '235-session-input-completion-records-declined-request-in-turn',
    ],
    now: (old) => expecting(old, { modifiedAt: old.initial['modifiedAt'] }),
  },
  {
    why: 'reducers have no clock: the end of a turn sets modifiedAt to startedAt plus duration',
    cases: ['240-turn-duration-is-clamped-to-zero', '250-turncomplete-force-cancels-auth-required-tool-call'],
    now: (old) => {
      const turn = (old.expected['turns'] as State[]).at(-1)!;
      const end = Date.parse(turn['startedAt'] as string) + (turn['duration'] as number);
      return expecting(old, { modifiedAt: new Date(end).toISOString() });
    },
  },
  {
    why: 'the lifecycle creationFailed is called failed',
    cases: ['004-session-creationfailed'],
    now: (old) => expecting(old, { lifecycle: 'failed' }),
  },
  {
    why: 'an error is the last response part of its turn, not a field of it',
    cases: ['016-session-error-finalizes-turn-with-error'],
    now: (old) => {
      const turns = old.expected['turns'] as State[];
      const { error, responseParts, ...turn } = turns.at(-1)!;
      const part = { kind: 'error', error };
      const [action] = old.actions as unknown as State[];
      return {
        ...old,
        actions: [{ ...action, error: undefined, part }] as unknown as Action[],
        expected: { ...old.expected, turns: [{ ...turn, responseParts: [...(responseParts as unknown[]), part] }] },
      };
    },
  },
  {
    why: 'work that a client does for the agent does not wait for a person',
    cases: ['225-session-inputneededset-replaces-existing'],
    now: (old) => expecting(old, { status: 8 }),
  },
  {
    why: 'a toggle says who enables (enablement), not only whether (enabled)',
    cases: ['060-session-customizationtoggled-toggles-by-id', '225-session-customizationtoggled-toggles-child-by-id'],
    now: () => undefined,
  },
];

describe('published reducer cases', () => {
  const published = fixtures<Fixture>('ahp-0.6/test-cases/reducers')?.filter(([, c]) => c.reducer in reducers);
  if (!published) return it.skip('the fixtures are not there (GROVE_FIXTURES)', () => {});
  const cases = published.flatMap(([name, old]) => {
    const change = CHANGES.find((c) => c.cases.includes(name));
    const now = change ? change.now(old) : old;
    return now ? [[change ? `${name} (${change.why})` : name, now] as const] : [];
  });

  it.each(cases)('%s', (_name, fixture) => {
    const reduce = reducers[fixture.reducer as keyof States] as Reducer<unknown>;
    const reached = fixture.actions.reduce<unknown>(
      (state, action) => frozen(reduce(state, action)),
      frozen(fixture.initial),
    );
    expect(normal(reached)).toEqual(normal(fixture.expected));
  });

  it('lists no change of a case that does not exist', () => {
    const names = new Set(published.map(([name]) => name));
    expect(CHANGES.flatMap((change) => change.cases).filter((name) => !names.has(name))).toEqual([]);
  });
});
