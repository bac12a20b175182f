/** Rows of the list that match a filter: fetched in pages, and kept up to date by the host's changes. */

import {
  matches,
  ordered,
  type Provider,
  type RowChange,
  type RowFilter,
  type RowGroup,
  type SessionRow,
} from '../state/rows';
import { onNextFrame } from './frame';

/** A page of rows. */
export interface RowPage {
  sessions: SessionRow[];
  total: number;
  groups?: RowGroup[];
  nextCursor?: string;
}

/** The host's answers, so that a query does not know the protocol. */
export interface RowSource {
  page(params: { filter: RowFilter; limit: number; cursor?: string }): Promise<RowPage>;
  providers(): readonly Provider[];
}

export class SessionQuery {
  rows = $state.raw<readonly SessionRow[]>([]);
  groups = $state.raw<readonly RowGroup[]>([]);
  /** The number of rows that match on the host, as of the last page. */
  total = $state(0);
  loaded = $state(false);
  loading = $state(false);
  more = $state(false);
  problem = $state<string | undefined>();

  #source: RowSource;
  #limit: number;
  #filter: RowFilter = {};
  #known = new Map<string, SessionRow>();
  #cursor: string | undefined;
  #pages = 1;
  /** Changes during the fetch of a page, which may be older than them. */
  #meanwhile: RowChange[] = [];
  #fetch = 0;

  constructor(source: RowSource, filter: RowFilter, limit: number) {
    this.#source = source;
    this.#filter = filter;
    this.#limit = limit;
  }

  get filter(): RowFilter {
    return this.#filter;
  }

  /** Shows what matches another filter, from its first page on. The rows stay until the others are there. */
  async show(filter: RowFilter): Promise<void> {
    this.#filter = filter;
    this.#pages = 1;
    await this.refresh();
  }

  /** Fetches as many pages as were shown before. */
  async refresh(): Promise<void> {
    const fetch = this.#begin();
    const fresh = new Map<string, SessionRow>();
    let cursor: string | undefined;
    try {
      for (let page = 0; page < this.#pages; page++) {
        cursor = await this.#page(fresh, cursor, fetch);
        if (fetch !== this.#fetch) return;
        if (cursor === undefined) break;
      }
      this.#known = fresh;
      this.#end(cursor);
    } catch (error) {
      this.#failed(fetch, error);
    }
  }

  async loadMore(): Promise<void> {
    if (this.#cursor === undefined || this.loading) return;
    const fetch = this.#begin();
    try {
      const cursor = await this.#page(this.#known, this.#cursor, fetch);
      if (fetch !== this.#fetch) return;
      this.#pages += 1;
      this.#end(cursor);
    } catch (error) {
      this.#failed(fetch, error);
    }
  }

  /** Applies a change of the host. */
  apply(change: RowChange): void {
    this.#change(this.#known, change);
    if (this.loading) this.#meanwhile.push(change);
    onNextFrame(this.#publish);
  }

  async #page(into: Map<string, SessionRow>, cursor: string | undefined, fetch: number): Promise<string | undefined> {
    const page = await this.#source.page({
      filter: this.#filter,
      limit: this.#limit,
      ...(cursor === undefined ? {} : { cursor }),
    });
    if (fetch !== this.#fetch) return undefined;
    for (const row of page.sessions) into.set(row.id, row);
    this.total = page.total;
    if (page.groups) this.groups = page.groups;
    return page.nextCursor;
  }

  #begin(): number {
    this.loading = true;
    this.problem = undefined;
    this.#meanwhile = [];
    return ++this.#fetch;
  }

  #end(cursor: string | undefined): void {
    this.#cursor = cursor;
    for (const change of this.#meanwhile) this.#change(this.#known, change);
    this.#meanwhile = [];
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

  #change(rows: Map<string, SessionRow>, { removed = [], added = [], changed = [], groups }: RowChange): void {
    const before = rows.size;
    for (const id of removed) rows.delete(id);
    for (const row of [...added, ...changed]) {
      if (matches(row, this.#filter, this.#source.providers())) rows.set(row.id, row);
      else rows.delete(row.id);
    }
    this.total = Math.max(rows.size, this.total + rows.size - before);
    if (groups) this.groups = groups;
  }

  #publish = (): void => {
    this.rows = ordered(this.#known.values());
  };
}
