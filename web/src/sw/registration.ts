/** The registration of the service worker. */

/** A policy of trusted types, which the page's types do not know yet. */
interface Policies {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

const WORKER = './sw.js';

/** Only the page's own worker can become one. */
const rules = {
  createScriptURL(url: string): string {
    if (url !== WORKER) throw new TypeError(`${url} is not the worker of the page`);
    return url;
  },
};

let trusted: string | undefined;

function workerUrl(): string {
  const policies = (globalThis as { trustedTypes?: Policies }).trustedTypes;
  trusted ??= (policies?.createPolicy('grove-worker', rules) ?? rules).createScriptURL(WORKER);
  return trusted;
}

/** The browser has service workers, and the page's address lets it use one. */
export const hasWorkers = (): boolean => isSecureContext && 'serviceWorker' in navigator;

/**
 * The page's address proves which program serves it. At a loopback port any program may listen while the host is down, and a
 * browser asks the port for a new worker by itself: there the worker is registered only when a person turns notifications on.
 */
export const isCertain = (): boolean => location.protocol === 'https:';

/** Registers the worker, and waits until it is active. */
export async function register(): Promise<ServiceWorkerRegistration> {
  await navigator.serviceWorker.register(workerUrl(), { scope: './' });
  return navigator.serviceWorker.ready;
}

/** The worker, if it is registered. */
export function registered(): Promise<ServiceWorkerRegistration | undefined> {
  return hasWorkers() ? navigator.serviceWorker.getRegistration('./') : Promise.resolve(undefined);
}
