/** How a person looks at the list of sessions: filter, grouping and selection. The list itself is a query. */

import { type Grouping, type RowFilter, sections, select, type SessionRow } from '../state/rows';
import { clock } from './clock.svelte';
import type { SessionHub } from './session_hub.svelte';
import type { SessionQuery } from './session_query.svelte';

/** Filters that a person turns on. Without one, all sessions that are not archived are shown. */
export const LENSES = ['needsYou', 'running', 'failed', 'archived'] as const;
export type Lens = (typeof LENSES)[number];

const PAGE = 100;
/** A search begins when a person stops typing for a moment. */
const TYPING_MS = 120;
const KEY = 'grove-grouping';

export class ListView {
  lens = $state<Lens | undefined>();
  text = $state('');
  grouping = $state<Grouping>(stored());
  /** Checkboxes are shown: a person selects several. */
  isSelecting = $state(false);
  selected = $state.raw<ReadonlySet<string>>(new Set());
  /** The row whose title is edited. */
  renaming = $state<string | undefined>();

  readonly query: SessionQuery;
  readonly close: () => void;
  #anchor: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(hub: SessionHub) {
    const { query, close } = hub.query(this.#filter(), PAGE);
    this.query = query;
    this.close = () => {
      clearTimeout(this.#timer);
      close();
    };
  }

  readonly sections = $derived.by(() => sections(this.query.rows, this.grouping, this.query.groups, clock.now));
  /** The rows as they are shown, from top to bottom. */
  readonly shown: readonly SessionRow[] = $derived(this.sections.flatMap(({ rows }) => rows));
  readonly selectedRows: readonly SessionRow[] = $derived(this.shown.filter(({ id }) => this.selected.has(id)));
  readonly isFiltered = $derived(this.lens !== undefined || this.text.trim() !== '');

  search(text: string): void {
    this.text = text;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#show(), TYPING_MS);
  }

  toggleLens(lens: Lens): void {
    this.lens = this.lens === lens ? undefined : lens;
    this.#show();
  }

  setGrouping(grouping: Grouping): void {
    this.grouping = grouping;
    try {
      localStorage.setItem(KEY, grouping);
    } catch {
      // A browser that stores nothing starts with the default again.
    }
  }

  /** Selects with a click or a key. */
  pick(row: SessionRow, how: { range: boolean; toggle: boolean }): void {
    const ids = this.shown.map(({ id }) => id);
    this.selected = select(ids, this.selected, this.#anchor, row.id, how);
    if (!how.range) this.#anchor = row.id;
    this.isSelecting = this.selected.size > 0;
  }

  beginSelection(): void {
    this.isSelecting = true;
  }

  endSelection(): void {
    this.selected = new Set();
    this.#anchor = undefined;
    this.isSelecting = false;
  }

  #show(): void {
    this.endSelection();
    void this.query.show(this.#filter());
  }

  #filter(): RowFilter {
    const text = this.text.trim();
    return { ...LENS_FILTERS[this.lens ?? 'all'], ...(text ? { text } : {}) };
  }
}

const LENS_FILTERS: Record<Lens | 'all', RowFilter> = {
  all: { archived: false },
  needsYou: { archived: false, states: ['needsInput'] },
  running: { archived: false, states: ['inProgress', 'needsInput'] },
  failed: { archived: false, states: ['error'] },
  archived: { archived: true },
};

function stored(): Grouping {
  try {
    return localStorage.getItem(KEY) === 'project' ? 'project' : 'day';
  } catch {
    return 'day';
  }
}
