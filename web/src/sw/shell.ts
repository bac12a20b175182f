/** The decision which requests the service worker answers. Everything else goes to the network as if it did not exist. */

/** The files of a build, by their paths below the page. */
export interface Shell {
  /** Differs whenever a file does. */
  version: string;
  /** The files without which the page does not start; they are stored when the worker is installed. */
  start: readonly string[];
  /** The files that the page loads when it needs them. Their names change with their content; they are stored when they are used. */
  later: readonly string[];
}

export type Answer = 'page' | 'file' | 'network';

/** The prefix of the caches of all versions. */
export const CACHE_PREFIX = 'grove-shell-';
/** The name under which the page itself is stored. */
export const PAGE = './';

/**
 * Decides on a request. Only the page and files of the build are answered, by their exact path, so that nothing with data
 * or a proof of identity (`/ws`, `/proof`, `/pair`) ever reaches a cache.
 */
export function answerTo(request: { method: string; mode: string; url: string }, scope: string, shell: Shell): Answer {
  const url = new URL(request.url);
  if (request.method !== 'GET' || !url.href.startsWith(scope)) return 'network';
  const path = url.href.slice(scope.length).replace(/[?#].*$/, '');
  if (path === '' || path === 'index.html') return request.mode === 'navigate' ? 'page' : 'network';
  if (url.search !== '') return 'network';
  return shell.start.includes(path) || shell.later.includes(path) ? 'file' : 'network';
}
