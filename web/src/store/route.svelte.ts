/** The address contains the open session, so that going back, reloading and bookmarks work. */

import type { Uri } from '../wire/protocol';

export type Route = { kind: 'list' } | { kind: 'new' } | { kind: 'session'; uri: Uri };

export class Router {
  route = $state.raw<Route>(read());

  constructor() {
    addEventListener('hashchange', () => {
      this.route = read();
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

function read(): Route {
  const hash = location.hash;
  if (hash === '#/new') return { kind: 'new' };
  const uri = /^#\/session\/(.+)$/.exec(hash)?.[1];
  return uri ? { kind: 'session', uri: decodeURIComponent(uri) } : { kind: 'list' };
}
