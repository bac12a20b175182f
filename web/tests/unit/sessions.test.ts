// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import type { Client } from '../../src/protocol/client';
import { SessionList } from '../../src/store/sessions.svelte';
import type { ListSessionsParams, ListSessionsResult, SessionSummary } from '../../src/wire/types';

const summary = (id: string, minute: number, more: Partial<SessionSummary> = {}): SessionSummary => ({
  resource: `ahp-session:/${id}`,
  provider: 'scripted',
  title: id,
  status: 1,
  createdAt: '2026-01-01T00:00:00.000Z',
  modifiedAt: `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`,
  ...more,
});

type Page = (params: ListSessionsParams) => Promise<ListSessionsResult> | ListSessionsResult;

function list(page: Page): SessionList {
  const client = { request: (_method: string, params: ListSessionsParams) => Promise.resolve(page(params)) };
  return new SessionList(client as unknown as Client);
}

const frame = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 40));
const titles = (sessions: SessionList): string[] => sessions.items.map((session) => session.title);

describe('the list of sessions', () => {
  const pages: Record<string, ListSessionsResult> = {
    first: { items: [summary('c', 3), summary('b', 2)], nextCursor: 'second' },
    second: { items: [summary('a', 1)] },
  };
  const paged: Page = ({ cursor }) => pages[cursor ?? 'first']!;

  it('comes in pages, and the next refresh fetches as many', async () => {
    const sessions = list(paged);
    await sessions.refresh();
    expect(titles(sessions)).toEqual(['c', 'b']);
    expect(sessions.more).toBe(true);
    await sessions.loadMore();
    expect(titles(sessions)).toEqual(['c', 'b', 'a']);
    expect(sessions.more).toBe(false);
    await sessions.refresh();
    expect(titles(sessions)).toEqual(['c', 'b', 'a']);
  });

  it('follows what the host tells', async () => {
    const sessions = list(paged);
    await sessions.refresh();
    sessions.added({ channel: 'ahp-root://', summary: summary('d', 4) });
    sessions.removed({ channel: 'ahp-root://', session: 'ahp-session:/c' });
    const changes = { title: 'B', modifiedAt: '2026-01-01T00:09:00.000Z' };
    sessions.changed({ channel: 'ahp-root://', session: 'ahp-session:/b', changes });
    sessions.changed({ channel: 'ahp-root://', session: 'ahp-session:/unknown', changes });
    await frame();
    expect(titles(sessions)).toEqual(['B', 'd']);
  });

  it('keeps what was told while a page was on its way', async () => {
    let arrive: (result: ListSessionsResult) => void = () => {};
    const sessions = list(() => new Promise((resolve) => (arrive = resolve)));
    const refreshed = sessions.refresh();
    await frame();
    sessions.added({ channel: 'ahp-root://', summary: summary('new', 9) });
    sessions.removed({ channel: 'ahp-root://', session: 'ahp-session:/gone' });
    arrive({ items: [summary('old', 1), summary('gone', 2)] });
    await refreshed;
    expect(titles(sessions)).toEqual(['new', 'old']);
  });

  it('forgets sessions that are gone after a reconnect', async () => {
    let items = [summary('a', 1), summary('b', 2)];
    const sessions = list(() => ({ items }));
    await sessions.refresh();
    items = [summary('b', 2)];
    await sessions.refresh();
    expect(titles(sessions)).toEqual(['b']);
  });

  it('asks the host for pages without the sessions of other tools', async () => {
    const asked: ListSessionsParams[] = [];
    const sessions = list((params) => {
      asked.push(params);
      return paged(params);
    });
    await sessions.refresh();
    await sessions.loadMore();
    expect(asked.map((params) => params._meta)).toEqual([{ history: false }, { history: false }]);
  });

  it('says why it cannot be fetched', async () => {
    const sessions = list(() => Promise.reject(new Error('not connected')));
    await sessions.refresh();
    expect(sessions.problem).toBe('not connected');
  });
});
