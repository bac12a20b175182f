/// <reference lib="webworker" />
/**
 * The service worker: it shows notifications, and the page while its host cannot be reached.
 *
 * It has no key and speaks with no host: a message contains what it shows. The build writes it to `sw.js` at the root, as one file.
 */

import { addressOf, notificationOf, type PushMessage, readMessage } from './message';
import { answerTo, CACHE_PREFIX, PAGE, type Shell } from './shell';

declare const self: ServiceWorkerGlobalScope;
declare const __GROVE_SHELL__: Shell;

const shell = __GROVE_SHELL__;
const cacheName = CACHE_PREFIX + shell.version;

/** The time after which a host counts as unreachable, if there is a stored page. */
const PATIENCE_MS = 4_000;

self.addEventListener('install', (event) => {
  event.waitUntil(
    (async () => {
      const cache = await caches.open(cacheName);
      // Not from the browser's own cache, which may have a file of another build.
      await cache.addAll(
        [PAGE, ...shell.start].map((path) => new Request(path, { cache: 'reload', credentials: 'omit' })),
      );
      await self.skipWaiting();
    })(),
  );
});

self.addEventListener('activate', (event) => {
  event.waitUntil(
    (async () => {
      const names = await caches.keys();
      const old = names.filter((name) => name.startsWith(CACHE_PREFIX) && name !== cacheName);
      await Promise.all(old.map((name) => caches.delete(name)));
      await self.clients.claim();
    })(),
  );
});

self.addEventListener('fetch', (event) => {
  const answer = answerTo(event.request, self.registration.scope, shell);
  if (answer === 'page') event.respondWith(page(event.request));
  if (answer === 'file') event.respondWith(file(event.request));
});

/** The page from the host; from the cache if the host cannot be reached. */
async function page(request: Request): Promise<Response> {
  const stored = async (): Promise<Response | undefined> => (await caches.open(cacheName)).match(PAGE);
  try {
    const response = await fetch(request, { signal: AbortSignal.timeout(PATIENCE_MS) });
    // A proxy in front of a host that is away answers with an error of its own.
    return response.status < 500 ? response : ((await stored()) ?? response);
  } catch (error) {
    const found = await stored();
    if (found) return found;
    throw error;
  }
}

/** A file of the build. Its content belongs to its name, or it is as old as the worker. */
async function file(request: Request): Promise<Response> {
  const cache = await caches.open(cacheName);
  const found = await cache.match(request);
  if (found) return found;
  const response = await fetch(request);
  if (response.ok && response.type === 'basic') await cache.put(request, response.clone());
  return response;
}

self.addEventListener('push', (event) => {
  const message = readMessage(event.data?.text() ?? '', self.navigator.languages);
  if (!message) return;
  event.waitUntil(message.type === 'close' ? close(message.tag) : show(message));
});

async function show(message: Exclude<PushMessage, { type: 'close' }>): Promise<void> {
  const { title, options } = notificationOf(message);
  if (message.type === 'show' && (await isShown(message.session))) return;
  await self.registration.showNotification(title, options);
}

async function close(tag: string): Promise<void> {
  for (const notification of await self.registration.getNotifications({ tag })) notification.close();
}

const windows = (): Promise<readonly WindowClient[]> =>
  self.clients.matchAll({ type: 'window', includeUncontrolled: true });

/** The person is looking at the session. */
async function isShown(session: string): Promise<boolean> {
  const hash = addressOf(session);
  return (await windows()).some((window) => window.focused && new URL(window.url).hash.startsWith(hash));
}

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  const { session } = (event.notification.data ?? {}) as { session?: unknown };
  event.waitUntil(open(typeof session === 'string' ? session : undefined));
});

/** Shows a session in an open window, or in a new one. */
async function open(session: string | undefined): Promise<void> {
  const [window] = [...(await windows())].sort((a, b) => Number(b.focused) - Number(a.focused));
  if (!window) {
    await self.clients.openWindow(
      new URL(session === undefined ? './' : `./${addressOf(session)}`, self.registration.scope),
    );
    return;
  }
  if (session !== undefined) window.postMessage({ type: 'grove-open', session });
  await window.focus();
}

// The browser has replaced the subscription, or ended it. The host learns of it from a page, which alone has a key: an open one
// now, else the next one that is opened.
self.addEventListener('pushsubscriptionchange', (event) => {
  const { oldSubscription } = event as unknown as { oldSubscription?: PushSubscription };
  const resubscribe = async (): Promise<void> => {
    const options = oldSubscription?.options;
    if (options) await self.registration.pushManager.subscribe(options);
    for (const window of await windows()) window.postMessage({ type: 'grove-subscription' });
  };
  (event as ExtendableEvent).waitUntil(resubscribe());
});
