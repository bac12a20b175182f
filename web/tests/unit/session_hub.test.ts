// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import type { Client } from '../../src/protocol/client';
import type { SessionRow, WaitingItem } from '../../src/state/rows';
import { SessionHub } from '../../src/store/session_hub.svelte';
import { SessionList } from '../../src/store/sessions.svelte';
import type { SessionSummary } from '../../src/wire/types';

const row = (id: string, more: Partial<SessionRow> = {}): SessionRow => ({
  id,
  resource: id,
  providerId: 'p',
  sessionType: 'a',
  createdAt: 1,
  updatedAt: 1,
  title: id,
  status: 'completed',
  isArchived: false,
  isRead: true,
  ...more,
});

const summary = (id: string, status: number): SessionSummary => ({
  resource: `ahp-session:/${id}`,
  provider: 'scripted',
  title: id,
  status,
  createdAt: '2026-01-01T00:00:00.000Z',
  modifiedAt: '2026-01-01T00:00:00.000Z',
  workingDirectories: ['file:///src/site'],
});

type Answers = Record<string, (params: Record<string, unknown>) => unknown>;

/** A hub at a host that answers these requests, and the requests that it got. */
function hub(answers: Answers): { hub: SessionHub; asked: string[] } {
  const asked: string[] = [];
  const request = (method: string, params: Record<string, unknown>): Promise<unknown> => {
    asked.push(method.replace('x-grove/sessions/', ''));
    const answer = answers[method];
    return Promise.resolve().then(() => (answer ? answer(params) : {}));
  };
  const client = { request, requestOwn: request } as unknown as Client;
  const made = new SessionHub(client, new SessionList(client));
  made.introduced(new Set(Object.keys(answers).filter((name) => name.startsWith('x-grove/'))));
  return { hub: made, asked };
}

const soon = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 120));

const item = (session: string): WaitingItem => ({
  session,
  resource: session,
  title: session,
  providerId: 'p',
  providerLabel: 'P',
  updatedAt: 1,
  id: 'r',
});

describe('the sessions of a host', () => {
  const LIST = 'x-grove/sessions/list';

  it('that has no list of all sources are its own, with what waits among them', async () => {
    const items = [summary('runs', 8), summary('waits', 24), summary('old', 1 | 64)];
    const { hub: made } = hub({ listSessions: () => ({ items }) });
    const { query } = made.query({ archived: false }, 10);
    await made.connected();
    await soon();
    expect(query.rows.map(({ title, status }) => [title, status])).toEqual([
      ['waits', 'needsInput'],
      ['runs', 'inProgress'],
    ]);
    expect(query.rows[0]!.workspace?.label).toBe('site');
    expect(made.inbox.items.map(({ title, request }) => [title, request])).toEqual([['waits', undefined]]);
  });

  it('that does not know filters are filtered here', async () => {
    const sessions = [row('a'), row('b', { isArchived: true })];
    const { hub: made } = hub({
      [LIST]: () => ({ sessions, total: 2 }),
      'x-grove/sessions/providers': () => ({ providers: [] }),
    });
    const { query } = made.query({ archived: false }, 10);
    await made.connected();
    await soon();
    expect(query.rows.map(({ id }) => id)).toEqual(['a']);
  });

  it('are subscribed to before they are listed, and what waits is asked for when it may have changed', async () => {
    const { hub: made, asked } = hub({
      [LIST]: () => ({ sessions: [row('a')], total: 1 }),
      'x-grove/sessions/providers': () => ({ providers: [] }),
      'x-grove/sessions/waiting': () => ({ items: [item('w')], more: 0 }),
    });
    const { query } = made.query({}, 10);
    asked.length = 0;
    await made.connected();
    await soon();
    expect(asked).toEqual(['subscribe', 'providers', 'list', 'waiting']);
    asked.length = 0;
    made.hear({ changed: [row('a', { title: 'A' })] });
    await soon();
    expect([asked, query.rows[0]!.title]).toEqual([[], 'A']);
    // A row that waits, and one whose request was listed.
    for (const change of [{ changed: [row('b', { status: 'needsInput' as const })] }, { removed: ['w'] }]) {
      made.hear(change);
      await soon();
      expect(asked.splice(0)).toEqual(['waiting']);
    }
    made.hear({ reset: true });
    await soon();
    expect(asked).toEqual(['list', 'waiting']);
  });

  it('show a request again whose answer is refused', async () => {
    const { hub: made } = hub({
      [LIST]: () => ({ sessions: [], total: 0 }),
      'x-grove/sessions/waiting': () => ({ items: [item('w')], more: 0 }),
      'x-grove/sessions/answer': () => Promise.reject(new Error('it was answered')),
    });
    await made.inbox.refresh();
    const answered = made.answer(item('w'), { kind: 'permission', approved: true });
    expect(made.inbox.count).toBe(0);
    await expect(answered).rejects.toThrow('it was answered');
    expect(made.inbox.count).toBe(1);
  });
});
