/** What the palette finds: sessions, commands, agents and settings. */

import { type SessionRow, uriOf } from '../state/rows';
import { search } from '../text/fuzzy';
import { shellText as words } from '../text/messages/shell';
import { sessionsText } from '../text/messages/sessions';
import type { Host } from './host.svelte';
import { type Route, SECTIONS, type Section } from './route.svelte';
import type { SessionQuery } from './session_query.svelte';

export interface Entry {
  key: string;
  kind: 'session' | 'command' | 'agent' | 'settings';
  title: string;
  /** Shown beside the title, and searched as well. */
  detail: string;
  act: () => void;
}

/** What the palette can do in the page. */
export interface PaletteActions {
  go(route: Route): void;
  showKeys(): void;
  searchList(): void;
  toggleList(): void;
  startWith(agent: string): void;
}

const MOST = 40;
/** Sessions that are shown before anything is typed. */
const RECENT = 8;
const TYPING_MS = 100;

const SECTION_NAMES: Record<Section, string> = {
  general: words.general,
  agents: words.agents,
  hosts: words.hosts,
  devices: words.devices,
  rules: words.rules,
  notifications: words.notifications,
};

export class PaletteStore {
  text = $state('');
  readonly query: SessionQuery;
  readonly close: () => void;

  #host: Host;
  #actions: PaletteActions;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(host: Host, actions: PaletteActions) {
    this.#host = host;
    this.#actions = actions;
    const { query, close } = host.hub.query({ archived: false }, MOST);
    this.query = query;
    this.close = () => {
      clearTimeout(this.#timer);
      close();
    };
  }

  readonly found: readonly Entry[] = $derived.by(() => {
    const sessions = this.query.rows.map((row) => this.#session(row));
    const text = this.text.trim();
    if (!text) return [...sessions.slice(0, RECENT), ...this.#commands()];
    return search([...this.#commands(), ...sessions], text, ({ title, detail }) => `${title} ${detail}`, MOST);
  });

  /** Searches the host's list too, as far as it was not loaded. */
  type(text: string): void {
    this.text = text;
    clearTimeout(this.#timer);
    const wanted = text.trim();
    this.#timer = setTimeout(() => {
      void this.query.show(wanted ? { text: wanted } : { archived: false });
    }, TYPING_MS);
  }

  #session(row: SessionRow): Entry {
    const agent = this.#host.agentName(row.sessionType);
    return {
      key: row.id,
      kind: 'session',
      title: row.title || sessionsText.untitled,
      detail: [row.workspace?.label, agent, this.#host.hub.provider(row.providerId)?.label].filter(Boolean).join(' · '),
      act: () => this.#actions.go({ kind: 'session', uri: uriOf(row) }),
    };
  }

  #commands(): Entry[] {
    const { go, showKeys, searchList, toggleList, startWith } = this.#actions;
    const command = (title: string, detail: string, act: () => void): Entry => ({
      key: `command ${title}`,
      kind: 'command',
      title,
      detail,
      act,
    });
    const agents = (this.#host.root.state?.agents ?? []).map(({ provider, displayName }): Entry => ({
      key: `agent ${provider}`,
      kind: 'agent',
      title: words.startWith(displayName),
      detail: provider,
      act: () => startWith(provider),
    }));
    const settings = SECTIONS.map((section): Entry => ({
      key: `settings ${section}`,
      kind: 'settings',
      title: SECTION_NAMES[section],
      detail: words.settings,
      act: () => go({ kind: 'settings', section }),
    }));
    return [
      command(words.newSession, 'n', () => go({ kind: 'new' })),
      command(words.home, 'g h', () => go({ kind: 'home' })),
      command(words.commandSearch, '/', searchList),
      command(words.keyCollapse, 'Ctrl B', toggleList),
      command(words.commandKeys, '?', showKeys),
      ...agents,
      ...settings,
    ];
  }
}
