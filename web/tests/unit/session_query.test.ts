// @vitest-environment jsdom
import { describe, expect, it } from 'vitest';
import type { RowFilter, SessionRow } from '../../src/state/rows';
import { type RowPage, SessionQuery } from '../../src/store/session_query.svelte';

const row = (id: string, updatedAt: number, more: Partial<SessionRow> = {}): SessionRow => ({
  id,
  resource: id,
  providerId: 'p',
  sessionType: 'a',
  createdAt: 1,
  updatedAt,
  title: id,
  status: 'completed',
  isArchived: false,
  isRead: true,
  ...more,
});

type Page = (params: { filter: RowFilter; cursor?: string }) => Promise<RowPage> | RowPage;

function query(page: Page, filter: RowFilter = { archived: false }): SessionQuery {
  return new SessionQuery({ page: (params) => Promise.resolve(page(params)), providers: () => [] }, filter, 2);
}

const frame = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, 40));
const ids = ({ rows }: SessionQuery): string[] => rows.map((one) => one.id);

describe('a query', () => {
  const pages: Record<string, RowPage> = {
    first: { sessions: [row('c', 3), row('b', 2)], total: 3, nextCursor: 'second' },
    second: { sessions: [row('a', 1)], total: 3 },
  };
  const paged: Page = ({ cursor }) => pages[cursor ?? 'first']!;

  it('comes in pages, and a refresh fetches as many', async () => {
    const list = query(paged);
    await list.refresh();
    expect([ids(list), list.more, list.total]).toEqual([['c', 'b'], true, 3]);
    await list.loadMore();
    expect([ids(list), list.more]).toEqual([['c', 'b', 'a'], false]);
    await list.refresh();
    expect(ids(list)).toEqual(['c', 'b', 'a']);
  });

  it('applies its filter to what the host tells', async () => {
    const list = query(paged);
    await list.refresh();
    list.apply({ added: [row('d', 4), row('e', 5, { isArchived: true })], removed: ['c'] });
    list.apply({ changed: [row('b', 9, { title: 'B' })] });
    await frame();
    expect([ids(list), list.total]).toEqual([['b', 'd'], 3]);
    list.apply({ changed: [row('b', 10, { isArchived: true })] });
    await frame();
    expect(ids(list)).toEqual(['d']);
  });

  it('keeps what was told while a page was on its way', async () => {
    let arrive: (page: RowPage) => void = () => {};
    const list = query(() => new Promise((resolve) => (arrive = resolve)));
    const refreshed = list.refresh();
    await frame();
    list.apply({ added: [row('new', 9)], removed: ['gone'] });
    arrive({ sessions: [row('old', 1), row('gone', 2)], total: 2 });
    await refreshed;
    expect(ids(list)).toEqual(['new', 'old']);
  });

  it('shows the newest filter, whichever answer comes last', async () => {
    const answers: Record<string, (page: RowPage) => void> = {};
    const list = query(({ filter }) => new Promise((resolve) => (answers[filter.text ?? ''] = resolve)));
    const first = list.show({ text: 'o' });
    const second = list.show({ text: 'ol' });
    answers['ol']!({ sessions: [row('old', 1)], total: 1 });
    await second;
    answers['o']!({ sessions: [row('other', 2)], total: 1 });
    await first;
    expect([ids(list), list.total]).toEqual([['old'], 1]);
  });

  it('says why it cannot be fetched', async () => {
    const list = query(() => Promise.reject(new Error('not connected')));
    await list.refresh();
    expect([list.problem, list.loaded]).toEqual(['not connected', false]);
  });
});
