/** The address contains the open view, so that going back, reloading and bookmarks work. */

import { decoded } from '../text/format';
import type { Uri } from '../wire/protocol';

/** A part of a session that is shown beside the conversation. */
export const PANELS = ['tree', 'changes'] as const;
export type Panel = (typeof PANELS)[number];

/** The pages of the settings, in their order. */
export const SECTIONS = ['general', 'agents', 'hosts', 'devices', 'rules', 'notifications'] as const;
export type Section = (typeof SECTIONS)[number];

/** An open session. Without a chat it is the session's main chat; with a turn, that turn is scrolled into view. */
export interface SessionRoute {
  kind: 'session';
  uri: Uri;
  chat?: Uri;
  panel?: Panel;
  turn?: string;
}

export type Route = { kind: 'home' } | { kind: 'new' } | SessionRoute | { kind: 'settings'; section: Section };

export class Router {
  route = $state.raw<Route>(read(location.hash));

  constructor() {
    addEventListener('hashchange', () => {
      this.route = read(location.hash);
    });
  }

  go(route: Route): void {
    location.hash = write(route);
    this.route = route;
  }

  /** Changes the address without a step to go back to. */
  replace(route: Route): void {
    history.replaceState(history.state, '', write(route));
    this.route = route;
  }
}

export function write(route: Route): string {
  switch (route.kind) {
    case 'home':
      return '#/';
    case 'new':
      return '#/new';
    case 'settings':
      return `#/settings/${route.section}`;
    case 'session': {
      const { uri, chat, panel, turn } = route;
      const more = Object.entries({ chat, panel, turn }).filter(([, value]) => value !== undefined);
      const query = more.map(([name, value]) => `${name}=${encodeURIComponent(value!)}`).join('&');
      return `#/session/${encodeURIComponent(uri)}${query ? `?${query}` : ''}`;
    }
  }
}

/** The route of an address. One that cannot be read leads to the home page. */
export function read(hash: string): Route {
  if (hash === '#/new') return { kind: 'new' };
  const section = /^#\/settings(?:\/(\w+))?$/.exec(hash);
  if (section) return { kind: 'settings', section: SECTIONS.find((one) => one === section[1]) ?? 'general' };
  const [, name = '', query = ''] = /^#\/session\/([^?]+)(?:\?(.*))?$/.exec(hash) ?? [];
  const uri = decoded(name);
  return uri ? { kind: 'session', uri, ...options(query) } : { kind: 'home' };
}

function options(query: string): Omit<SessionRoute, 'kind' | 'uri'> {
  const found: Omit<SessionRoute, 'kind' | 'uri'> = {};
  for (const option of query.split('&')) {
    const [name, text = ''] = option.split('=', 2);
    const value = decoded(text);
    if (!value) continue;
    if (name === 'chat') found.chat = value;
    if (name === 'turn') found.turn = value;
    const panel = PANELS.find((one) => one === value);
    if (name === 'panel' && panel) found.panel = panel;
  }
  return found;
}
