/** Rows of the list of all sessions: what matches a filter, in which order, under which heading. Pure functions. */

import type { SessionInputRequest } from '../wire/types';

/** The lasting part of a row. Hosts send more; the page does not use it. */
export interface SessionRow {
  /** `providerId:localId`. */
  id: string;
  /** The session's URI in the list. */
  resource: string;
  providerId: string;
  /** The agent. */
  sessionType: string;
  createdAt: number;
  updatedAt: number;
  title: string;
  status: RowStatus;
  isArchived: boolean;
  isRead: boolean;
  isPinned?: boolean;
  loading?: boolean;
  /** What a running session does, as one line. */
  activity?: string;
  waiting?: number;
  group?: string;
  workspace?: { uri: string; label: string; host?: string };
  metadata?: Record<string, unknown>;
  capabilities?: { supportsRename?: boolean; supportsDelete?: boolean };
  chats?: { resource: string }[];
}

export type RowStatus = 'untitled' | 'inProgress' | 'needsInput' | 'completed' | 'error';

export interface RowGroup {
  /** Absent for the sessions whose folder is unknown. */
  key?: string;
  heading: string;
}

/** A change of the list, as the host tells it. Removals come first. */
export interface RowChange {
  added?: SessionRow[];
  changed?: SessionRow[];
  removed?: string[];
  groups?: RowGroup[];
  providers?: boolean;
  reset?: boolean;
}

export type Environment = 'thisHost' | 'otherHost' | 'history' | 'cloud';

/** A source of sessions. */
export interface Provider {
  id: string;
  label: string;
  environment: Environment;
  availability: 'ready' | 'connecting' | 'away' | 'incompatible';
  reason?: string;
}

export interface RowFilter {
  text?: string;
  states?: RowStatus[];
  archived?: boolean;
  pinned?: boolean;
  unread?: boolean;
  providers?: string[];
}

/** A session that waits for a person. Without a request, only its page shows what it asks. */
export interface WaitingItem {
  session: string;
  resource: string;
  title: string;
  providerId: string;
  providerLabel: string;
  workspace?: string;
  updatedAt: number;
  chatTitle?: string;
  id?: string;
  request?: SessionInputRequest;
}

/** The provider of this host's own sessions. */
export const THIS_HOST = 'local-agent-host';
/** This host's URIs have it in the list, so that they differ from those of other hosts. */
const PREFIX = 'agent-host-';

/** The URI under which this host serves a session; undefined for a session that only another host serves. */
export function servedUri(row: Pick<SessionRow, 'providerId' | 'resource'>): string | undefined {
  if (row.providerId === THIS_HOST)
    return row.resource.startsWith(PREFIX) ? row.resource.slice(PREFIX.length) : row.resource;
  return row.providerId.startsWith('history-') ? row.resource : undefined;
}

/** The URI that the page's address has for a row. */
export function uriOf(row: Pick<SessionRow, 'providerId' | 'resource'>): string {
  return servedUri(row) ?? row.resource;
}

export const isRunning = (row: Pick<SessionRow, 'status'>): boolean =>
  row.status === 'inProgress' || row.status === 'needsInput';

/** Whether a row matches, by the host's own rules (`filter` of `x-grove/sessions/list`). */
export function matches(row: SessionRow, filter: RowFilter, providers: readonly Provider[]): boolean {
  if (filter.providers?.length && !filter.providers.includes(row.providerId)) return false;
  if (filter.states?.length && !filter.states.includes(row.status)) return false;
  if (filter.archived !== undefined && filter.archived !== row.isArchived) return false;
  if (filter.pinned !== undefined && filter.pinned !== (row.isPinned ?? false)) return false;
  if (filter.unread !== undefined && filter.unread === row.isRead) return false;
  const words = wordsOf(filter.text);
  if (words.length === 0) return true;
  const label = providers.find((provider) => provider.id === row.providerId)?.label ?? '';
  const branch = row.metadata?.['branch'];
  const parts = [row.title, row.workspace?.label, row.workspace?.uri, branch, row.sessionType, label];
  const text = parts
    .filter((part) => typeof part === 'string')
    .join('\n')
    .toLowerCase();
  return words.every((word) => text.includes(word));
}

export function wordsOf(text: string | undefined): string[] {
  return (text ?? '')
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
}

/** Pinned rows first, then the one that changed last. Rows of the same time are ordered by their ids. */
export function ordered(rows: Iterable<SessionRow>): SessionRow[] {
  return [...rows].sort(
    (a, b) =>
      Number(b.isPinned ?? false) - Number(a.isPinned ?? false) ||
      b.updatedAt - a.updatedAt ||
      (a.id < b.id ? 1 : a.id > b.id ? -1 : 0),
  );
}

export type Grouping = 'project' | 'day';

/** A part of the list below a heading. Pinned rows have a part of their own. */
export interface Section {
  key: string;
  kind: 'pinned' | 'day' | 'project' | 'unknown';
  /** The heading of a project. */
  heading: string;
  /** How many days ago it was, for a day; at most 8, which is earlier. */
  days: number;
  rows: SessionRow[];
}

/** The parts of an ordered list. Only parts with rows are there. */
export function sections(
  rows: readonly SessionRow[],
  grouping: Grouping,
  groups: readonly RowGroup[],
  now: number,
): Section[] {
  const found = new Map<string, Section>();
  const put = (key: string, row: SessionRow, make: () => Omit<Section, 'key' | 'rows'>): void => {
    let section = found.get(key);
    if (!section) found.set(key, (section = { key, ...make(), rows: [] }));
    section.rows.push(row);
  };
  for (const row of rows) {
    if (row.isPinned) {
      put('pinned', row, () => ({ kind: 'pinned', heading: '', days: 0 }));
    } else if (grouping === 'day') {
      const days = daysAgo(row.updatedAt, now);
      put(`day ${days}`, row, () => ({ kind: 'day', heading: '', days }));
    } else if (row.group === undefined) {
      put('unknown', row, () => ({ kind: 'unknown', heading: '', days: 0 }));
    } else {
      const { group } = row;
      const heading = groups.find(({ key }) => key === group)?.heading ?? row.workspace?.label ?? group;
      put(`project ${group}`, row, () => ({ kind: 'project', heading, days: 0 }));
    }
  }
  const all = [...found.values()];
  // The newest row decides about the order of projects; sessions without a known folder come last.
  const last = (section: Section): number => (section.kind === 'unknown' ? 1 : 0);
  return all.sort((a, b) => Number(b.kind === 'pinned') - Number(a.kind === 'pinned') || last(a) - last(b));
}

/** Days between a time and now, by the person's calendar: 0 is today, 8 is earlier than a week ago. */
export function daysAgo(time: number, now: number): number {
  const day = (at: number): number => {
    const date = new Date(at);
    return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / 86_400_000;
  };
  return Math.min(8, Math.max(0, day(now) - day(time)));
}

/** Selects a row, all rows up to one, or one more, as lists of files do. */
export function select(
  rows: readonly string[],
  selected: ReadonlySet<string>,
  anchor: string | undefined,
  row: string,
  how: { range: boolean; toggle: boolean },
): ReadonlySet<string> {
  if (how.range && anchor !== undefined) {
    const [from, to] = [rows.indexOf(anchor), rows.indexOf(row)].sort((a, b) => a - b) as [number, number];
    if (from >= 0) return new Set([...(how.toggle ? selected : []), ...rows.slice(from, to + 1)]);
  }
  if (!how.toggle) return new Set([row]);
  const next = new Set(selected);
  if (!next.delete(row)) next.add(row);
  return next;
}
