/**
 * The sessions of all sources: this host's, other hosts', and other tools' histories.
 *
 * A host that does not know such a list, of an earlier version or of another vendor, gives its own sessions alone.
 */

import type { Client } from '../protocol/client';
import {
  matches,
  ordered,
  type Provider,
  type RowChange,
  type RowFilter,
  type SessionRow,
  THIS_HOST,
  uriOf,
  type WaitingItem,
} from '../state/rows';
import { activityOf, isArchived, isRead } from '../state/status';
import type { Uri } from '../wire/protocol';
import type { ChatInputAnswer, ChatInputResponseKind, SessionSummary } from '../wire/types';
import { Inbox } from './inbox.svelte';
import { type RowPage, type RowSource, SessionQuery } from './session_query.svelte';
import type { SessionList } from './sessions.svelte';

/** An answer of a person. */
export type WaitingAnswer =
  | { kind: 'permission'; approved: boolean; optionId?: string }
  | { kind: 'input'; response: ChatInputResponseKind; answers?: Record<string, ChatInputAnswer> };

const LIST = 'x-grove/sessions/list';

export class SessionHub implements RowSource {
  /** The host lists the sessions of all sources. */
  available = $state(false);
  /** It was found out whether it does. */
  known = $state(false);
  all = $state.raw<readonly Provider[]>([]);
  readonly inbox: Inbox;

  #client: Client;
  #own: SessionList;
  #methods: ReadonlySet<string> = new Set();
  #queries = new Set<SessionQuery>();

  constructor(client: Client, own: SessionList) {
    this.#client = client;
    this.#own = own;
    this.inbox = new Inbox(() => this.#waiting());
    own.onChanged = () => this.#ownChanged();
  }

  /** The host has said which requests it answers. */
  introduced(methods: ReadonlySet<string>): void {
    this.#methods = methods;
    this.available = methods.has(LIST);
    this.known = true;
  }

  /** Whether the host answers a request of Grove's own. */
  offers(method: string): boolean {
    return this.#methods.has(method);
  }

  /** After each handshake. The subscription is first, so that no change is missed. */
  async connected(): Promise<void> {
    if (this.available) {
      try {
        await this.#ask('subscribe', {});
        await this.#fetchProviders();
      } catch {
        // The connection is lost: the next handshake does it again.
        return;
      }
    }
    this.#refreshAll();
  }

  hear(params: unknown): void {
    const change = (params ?? {}) as RowChange;
    if (change.providers) void this.#fetchProviders().catch(() => {});
    if (change.reset) return this.#refreshAll();
    const told = [...(change.added ?? []), ...(change.changed ?? [])];
    const waits = (row: SessionRow): boolean => row.status === 'needsInput' || (row.waiting ?? 0) > 0;
    const listed = new Set(this.inbox.items.map((item) => item.session));
    const touches =
      told.some((row) => waits(row) || listed.has(row.id)) || change.removed?.some((id) => listed.has(id));
    if (touches) this.inbox.touch();
    for (const query of this.#queries) query.apply(change);
  }

  /** A list that follows the host until it is closed. */
  query(filter: RowFilter, limit: number): { query: SessionQuery; close: () => void } {
    const query = new SessionQuery(this, filter, limit);
    this.#queries.add(query);
    if (this.known) void query.refresh();
    return { query, close: () => this.#queries.delete(query) };
  }

  /** The row of an address of the page, if any list has it. */
  find(uri: Uri): SessionRow | undefined {
    for (const query of this.#queries) {
      const row = query.rows.find((row) => uriOf(row) === uri);
      if (row) return row;
    }
    return undefined;
  }

  provider(id: string): Provider | undefined {
    return this.all.find((provider) => provider.id === id);
  }

  // ---- The source of queries ---------------------------------------------------------------------------------------

  providers(): readonly Provider[] {
    return this.all;
  }

  async page(params: { filter: RowFilter; limit: number; cursor?: string }): Promise<RowPage> {
    if (this.available) {
      const page = (await this.#ask('list', { ...params, sort: 'updated' })) as RowPage;
      if (this.#filters) return page;
      return { ...page, sessions: page.sessions.filter((row) => matches(row, params.filter, this.all)) };
    }
    if (!this.#own.loaded) await this.#own.refresh();
    else if (params.cursor !== undefined) await this.#own.loadMore();
    if (this.#own.problem) throw new Error(this.#own.problem);
    return this.#ownPage(params.filter);
  }

  // ---- Actions on rows ---------------------------------------------------------------------------------------------

  /** Whether a row can be changed at all: other tools' sessions are theirs. */
  isOwn(row: SessionRow): boolean {
    return !row.providerId.startsWith('history-');
  }

  /** A host of an earlier version lists everything, whatever the filter. */
  get #filters(): boolean {
    return this.offers('x-grove/sessions/waiting');
  }

  get canPin(): boolean {
    return this.offers('x-grove/sessions/pin');
  }

  async rename(row: SessionRow, title: string): Promise<void> {
    const chat = row.chats?.[0]?.resource;
    if (this.available && chat !== undefined) return this.#do('renameChat', { session: row.id, chat, title });
    this.#client.dispatch(row.resource, { type: 'session/titleChanged', title });
  }

  async setArchived(row: SessionRow, archived: boolean): Promise<void> {
    if (this.available) return this.#do(archived ? 'archive' : 'unarchive', { session: row.id });
    this.#client.dispatch(row.resource, { type: 'session/isArchivedChanged', isArchived: archived });
  }

  async setRead(row: SessionRow, read: boolean): Promise<void> {
    if (this.available) return this.#do('setRead', { session: row.id, read });
    this.#client.dispatch(row.resource, { type: 'session/isReadChanged', isRead: read });
  }

  async setPinned(row: SessionRow, pinned: boolean): Promise<void> {
    await this.#do('pin', { session: row.id, pinned });
  }

  async delete(rows: readonly SessionRow[]): Promise<void> {
    if (this.available) {
      const { error } = (await this.#ask('delete', { sessions: rows.map(({ id }) => id) })) as { error?: string };
      if (error) throw new Error(error);
      return;
    }
    for (const row of rows) await this.#client.request('disposeSession', { channel: row.resource });
  }

  /** Sends a message to a session of another host. */
  async send(row: SessionRow, query: string): Promise<void> {
    const chat = row.chats?.[0]?.resource;
    if (chat !== undefined) await this.#do('sendRequest', { session: row.id, chat, query });
  }

  /** Answers a request. It is hidden at once, and shown again if the answer is refused. */
  async answer(item: WaitingItem, answer: WaitingAnswer): Promise<void> {
    this.inbox.answered(item);
    try {
      await this.#do('answer', { session: item.session, request: item.id, answer });
    } catch (error) {
      this.inbox.unanswered(item);
      throw error;
    }
  }

  /** Makes a session of this host from another tool's, and returns its URI. */
  async import(resource: Uri, agent: string | undefined): Promise<Uri> {
    const params = { resource, ...(agent === undefined ? {} : { agent }) };
    const { session } = (await this.#client.requestOwn('x-grove/history/import', params)) as { session: Uri };
    return session;
  }

  // ---- The requests ------------------------------------------------------------------------------------------------

  async browse(action: string, query: string): Promise<{ uri: Uri; label: string; description?: string }[]> {
    const params = { providerId: THIS_HOST, action, query };
    const { offers } = (await this.#ask('browse', params)) as {
      offers: { uri: Uri; label: string; description?: string }[];
    };
    return offers;
  }

  #ask(method: string, params: Record<string, unknown>): Promise<unknown> {
    return this.#client.requestOwn(`x-grove/sessions/${method}`, params);
  }

  async #do(method: string, params: Record<string, unknown>): Promise<void> {
    await this.#ask(method, params);
  }

  async #fetchProviders(): Promise<void> {
    this.all = ((await this.#ask('providers', {})) as { providers: Provider[] }).providers;
  }

  #refreshAll(): void {
    this.inbox.touch();
    for (const query of this.#queries) void query.refresh();
  }

  async #waiting(): Promise<{ items: WaitingItem[]; more: number }> {
    if (this.#filters) {
      return (await this.#ask('waiting', {})) as { items: WaitingItem[]; more: number };
    }
    // Only the status is known: the session itself shows what it asks.
    const rows = this.available
      ? (await this.page({ filter: { states: ['needsInput'] }, limit: 200 })).sessions
      : this.#own.items.map(rowOf).filter((row) => row.status === 'needsInput');
    const item = (row: SessionRow): WaitingItem => ({
      session: row.id,
      resource: row.resource,
      title: row.title,
      providerId: row.providerId,
      providerLabel: '',
      updatedAt: row.updatedAt,
    });
    return { items: rows.map(item), more: 0 };
  }

  // ---- A host without the list -------------------------------------------------------------------------------------

  #ownPage(filter: RowFilter): RowPage {
    const rows = ordered(this.#own.items.map(rowOf).filter((row) => matches(row, filter, [])));
    return { sessions: rows, total: rows.length, ...(this.#own.more ? { nextCursor: 'more' } : {}) };
  }

  #ownChanged(): void {
    if (this.available) return;
    this.inbox.touch();
    for (const query of this.#queries) if (query.loaded) void query.refresh();
  }
}

/** A row of the protocol's own list. */
export function rowOf(summary: SessionSummary): SessionRow {
  const folder = summary.workingDirectories?.[0];
  const status = { idle: 'completed', running: 'inProgress', input: 'needsInput', error: 'error' } as const;
  return {
    id: `${THIS_HOST}:${summary.resource}`,
    resource: summary.resource,
    providerId: THIS_HOST,
    sessionType: summary.provider,
    createdAt: Date.parse(summary.createdAt) || 0,
    updatedAt: Date.parse(summary.modifiedAt) || 0,
    title: summary.title,
    status: status[activityOf(summary.status)],
    isArchived: isArchived(summary.status),
    isRead: isRead(summary.status),
    ...(summary.activity ? { activity: summary.activity } : {}),
    ...(folder === undefined ? {} : { group: folder, workspace: { uri: folder, label: lastFolder(folder) } }),
    capabilities: { supportsRename: true, supportsDelete: true },
  };
}

const lastFolder = (uri: Uri): string => uri.replace(/\/+$/, '').split('/').at(-1) || uri;
