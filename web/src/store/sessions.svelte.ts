/** The list of sessions: fetched in pages, and updated by notifications. */

import type { Client } from '../protocol/client';
import { ROOT_RESOURCE_URI, type Uri } from '../wire/protocol';
import type { Notifications, SessionSummary } from '../wire/types';
import { onNextFrame } from './frame';

const PAGE = 50;

type Change = (sessions: Map<Uri, SessionSummary>) => void;

export class SessionList {
  /** Most recently changed first. */
  items = $state.raw<SessionSummary[]>([]);
  /** Sessions that were deleted while the page was open. */
  gone = $state.raw<ReadonlySet<Uri>>(new Set());
  /** The list was fetched at least once. */
  loaded = $state(false);
  loading = $state(false);
  more = $state(false);
  problem = $state<string | undefined>();

  /** Called after each change. */
  onChanged: () => void = () => {};

  #client: Client;
  #sessions = new Map<Uri, SessionSummary>();
  #cursor: string | undefined;
  #pages = 1;
  /** Changes during the fetch of a page, which may be older than them. */
  #meanwhile: Change[] = [];
  #fetch = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Fetches as much as was shown before. */
  async refresh(): Promise<void> {
    const fetch = this.#begin();
    const fresh = new Map<Uri, SessionSummary>();
    let cursor: string | undefined;
    try {
      for (let page = 0; page < this.#pages; page++) {
        cursor = await this.#page(fresh, cursor);
        if (fetch !== this.#fetch) return;
        if (cursor === undefined) break;
      }
      this.#sessions = fresh;
      this.#end(cursor);
    } catch (error) {
      this.#failed(fetch, error);
    }
  }

  async loadMore(): Promise<void> {
    if (this.#cursor === undefined || this.loading) return;
    const fetch = this.#begin();
    try {
      const cursor = await this.#page(this.#sessions, this.#cursor);
      if (fetch !== this.#fetch) return;
      this.#pages += 1;
      this.#end(cursor);
    } catch (error) {
      this.#failed(fetch, error);
    }
  }

  find(uri: Uri): SessionSummary | undefined {
    return this.items.find((session) => session.resource === uri);
  }

  added({ summary }: Notifications['root/sessionAdded']): void {
    this.#change((sessions) => sessions.set(summary.resource, summary));
  }

  removed({ session }: Notifications['root/sessionRemoved']): void {
    this.gone = new Set([...this.gone, session]);
    this.#change((sessions) => sessions.delete(session));
  }

  changed({ session, changes }: Notifications['root/sessionSummaryChanged']): void {
    this.#change((sessions) => {
      const known = sessions.get(session);
      if (known) sessions.set(session, { ...known, ...changes });
    });
  }

  async #page(into: Map<Uri, SessionSummary>, cursor: string | undefined): Promise<string | undefined> {
    // The page does not show sessions of other tools yet, so the host leaves them out.
    const result = await this.#client.request('listSessions', {
      channel: ROOT_RESOURCE_URI,
      limit: PAGE,
      cursor,
      _meta: { history: false },
    });
    // A host of an earlier version lists them anyway.
    const own = result.items.filter((summary) => summary._meta?.['history'] === undefined);
    for (const summary of own) into.set(summary.resource, summary);
    return result.nextCursor ?? undefined;
  }

  #begin(): number {
    this.loading = true;
    this.problem = undefined;
    this.#meanwhile = [];
    return ++this.#fetch;
  }

  #end(cursor: string | undefined): void {
    this.#cursor = cursor;
    for (const change of this.#meanwhile) change(this.#sessions);
    this.loading = false;
    this.loaded = true;
    this.more = cursor !== undefined;
    this.#publish();
  }

  #failed(fetch: number, error: unknown): void {
    if (fetch !== this.#fetch) return;
    this.loading = false;
    this.problem = error instanceof Error ? error.message : String(error);
  }

  #change(change: Change): void {
    change(this.#sessions);
    if (this.loading) this.#meanwhile.push(change);
    onNextFrame(this.#publish);
  }

  #publish = (): void => {
    this.items = [...this.#sessions.values()].sort((a, b) => Date.parse(b.modifiedAt) - Date.parse(a.modifiedAt));
    this.onChanged();
  };
}
