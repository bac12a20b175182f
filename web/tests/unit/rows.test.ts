import { describe, expect, it, test } from 'vitest';
import {
  daysAgo,
  matches,
  ordered,
  type Provider,
  type RowFilter,
  sections,
  select,
  servedUri,
  type SessionRow,
  uriOf,
} from '../../src/state/rows';

const row = (id: string, more: Partial<SessionRow> = {}): SessionRow => ({
  id,
  resource: `agent-host-ahp-session:/${id}`,
  providerId: 'local-agent-host',
  sessionType: 'scripted',
  createdAt: 1,
  updatedAt: 1,
  title: id,
  status: 'completed',
  isArchived: false,
  isRead: true,
  ...more,
});
const ids = (rows: readonly SessionRow[]): string[] => rows.map((one) => one.id);

describe('a filter', () => {
  const providers: Provider[] = [
    { id: 'agenthost-lab', label: 'The Lab', environment: 'otherHost', availability: 'ready' },
  ];
  const rows = [
    row('a', { title: 'Fix the Build', workspace: { uri: 'file:///src/site', label: 'site' } }),
    row('b', { status: 'needsInput', isRead: false, metadata: { branch: 'main' } }),
    row('c', { providerId: 'agenthost-lab', isArchived: true, isPinned: true }),
  ];
  const cases: [RowFilter, string[]][] = [
    [{}, ['a', 'b', 'c']],
    [{ text: 'BUILD  fix' }, ['a']],
    [{ text: 'src/site' }, ['a']],
    [{ text: 'main' }, ['b']],
    [{ text: 'the lab' }, ['c']],
    [{ text: 'fix nothing' }, []],
    [{ states: ['needsInput', 'error'] }, ['b']],
    [{ archived: false }, ['a', 'b']],
    [{ pinned: true }, ['c']],
    [{ pinned: false, unread: false }, ['a']],
    [{ providers: ['agenthost-lab'] }, ['c']],
  ];
  for (const [filter, found] of cases) {
    it(JSON.stringify(filter), () => {
      expect(ids(rows.filter((one) => matches(one, filter, providers)))).toEqual(found);
    });
  }
});

test('pinned rows come first, then the one that changed last', () => {
  const rows = [row('a', { updatedAt: 1 }), row('b', { updatedAt: 3 }), row('c', { updatedAt: 2, isPinned: true })];
  expect(ids(ordered(rows))).toEqual(['c', 'b', 'a']);
  expect(ids(ordered([row('x'), row('y')]))).toEqual(['y', 'x']);
});

describe('the parts of a list', () => {
  const now = new Date(2026, 5, 10, 12).getTime();
  const day = 86_400_000;
  it('are days by the calendar, the pinned ones first', () => {
    const rows = [
      row('p', { updatedAt: now - 3 * day, isPinned: true }),
      row('a', { updatedAt: now }),
      row('b', { updatedAt: new Date(2026, 5, 9, 23, 59).getTime() }),
      row('c', { updatedAt: now - 40 * day }),
    ];
    const found = sections(rows, 'day', [], now);
    expect(found.map(({ kind, days, rows }) => [kind, days, ids(rows)])).toEqual([
      ['pinned', 0, ['p']],
      ['day', 0, ['a']],
      ['day', 1, ['b']],
      ['day', 8, ['c']],
    ]);
    // A clock that is behind shows the future as today.
    expect(daysAgo(now + 5 * day, now)).toBe(0);
  });

  it('are projects with the headings of the host, the unknown folder last', () => {
    const rows = [row('x'), row('a', { group: '1' }), row('b', { group: '2' }), row('c', { group: '1' })];
    const groups = [{ key: '1', heading: 'site (work)' }, { key: '2', heading: 'site (home)' }, { heading: 'Unknown' }];
    const found = sections(rows, 'project', groups, now);
    expect(found.map(({ kind, heading, rows }) => [kind, heading, ids(rows)])).toEqual([
      ['project', 'site (work)', ['a', 'c']],
      ['project', 'site (home)', ['b']],
      ['unknown', '', ['x']],
    ]);
  });
});

test('the selection grows by one, or by all rows up to one', () => {
  const rows = ['a', 'b', 'c', 'd'];
  const one = select(rows, new Set(), undefined, 'b', { range: false, toggle: true });
  expect([...one]).toEqual(['b']);
  expect([...select(rows, one, 'b', 'd', { range: true, toggle: false })]).toEqual(['b', 'c', 'd']);
  expect([...select(rows, one, 'b', 'a', { range: true, toggle: false })]).toEqual(['a', 'b']);
  expect([...select(rows, one, 'b', 'b', { range: false, toggle: true })]).toEqual([]);
  expect([...select(rows, new Set(['a']), 'c', 'd', { range: true, toggle: true })]).toEqual(['a', 'c', 'd']);
});

test('a row leads to the address under which this host serves it', () => {
  expect(servedUri(row('1'))).toBe('ahp-session:/1');
  const history = { providerId: 'history-claude', resource: 'claude:/7' };
  expect(servedUri(history)).toBe('claude:/7');
  const remote = { providerId: 'agenthost-lab', resource: 'remote-lab-ahp-session:/1' };
  expect(servedUri(remote)).toBeUndefined();
  expect(uriOf(remote)).toBe('remote-lab-ahp-session:/1');
});
