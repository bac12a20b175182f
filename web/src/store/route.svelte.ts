/** The address contains the open session, so that going back, reloading and bookmarks work. */

import { decoded } from '../text/format';
import type { Uri } from '../wire/protocol';

export type Route = { kind: 'list' } | { kind: 'new' } | { kind: 'session'; uri: Uri };

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
}

export function write(route: Route): string {
  switch (route.kind) {
    case 'list':
      return '#/';
    case 'new':
      return '#/new';
    case 'session':
      return `#/session/${encodeURIComponent(route.uri)}`;
  }
}

/** The route of an address. One that cannot be read leads to the list. */
export function read(hash: string): Route {
  if (hash === '#/new') return { kind: 'new' };
  const uri = decoded(/^#\/session\/(.+)$/.exec(hash)?.[1] ?? '');
  return uri ? { kind: 'session', uri } : { kind: 'list' };
}
