/**
 * Access to the host. Page and host prove to each other that they know the token, and neither sends it.
 *
 * While the host is down, any program may listen on its port. So the page stores a key that is derived from the token
 * and its own origin, requests a proof over a nonce before it sends anything else, and checks a second proof on the
 * WebSocket before it uses it. Only the host of that token can create them, and only for the address of this page.
 */

import { decoded } from '../text/format';
import { fromHex, hmacSha256, toHex } from './hmac';
import type { Socket, SocketListener } from './jsonrpc';
import { randomHex } from './random';

const STORED_KEY = 'grove.pageKey';
/** The key under which pages of earlier versions stored the token itself. */
const STORED_TOKEN = 'grove.token';
const PATIENCE_MS = 10_000;
const NONCE_BYTES = 32;
const PROOF = /^[0-9a-f]{64}$/;
const CHALLENGE = /^[\w-]{16,128}$/;

/** The program at the host's address did not prove that it knows the token. Nothing was sent to it. */
export class NotProven extends Error {
  override name = 'NotProven';
}

/** The key of this origin's pages, in hexadecimal. The token cannot be derived from it. */
export type PageKey = string;

/** The inputs of both sides' proofs. The host has the same names in `page_access.rs`. */
export const derivePageKey = async (token: string, origin: string): Promise<PageKey> =>
  toHex(await hmacSha256(new TextEncoder().encode(token), `grove page key 1\n${origin}\n`));
export const proofs = {
  host: (key: PageKey, nonce: string, challenge: string) => sign(key, `grove host proof 1\n${nonce}\n${challenge}`),
  page: (key: PageKey, nonce: string, challenge: string) => sign(key, `grove page answer 1\n${nonce}\n${challenge}`),
  socket: (key: PageKey, nonce: string, challenge: string) => sign(key, `grove socket proof 1\n${nonce}\n${challenge}`),
};

async function sign(key: PageKey, message: string): Promise<string> {
  return toHex(await hmacSha256(fromHex(key), message));
}

/** The host's origin. During development the page's own origin is another one. */
function hostOrigin(): string {
  return import.meta.env.DEV ? (import.meta.env['VITE_GROVE_URL'] ?? location.origin) : location.origin;
}

/**
 * Removes the token from the address (`#token=…`), so that it is neither shown nor kept in the history, and returns the
 * key of this tab: the token's, or the stored one.
 */
export function takeKey(): Promise<PageKey> | undefined {
  const found = /^#token=([^&]+)$/.exec(location.hash)?.[1];
  if (found) {
    history.replaceState(null, '', location.pathname + location.search);
    return keepToken(decoded(found) ?? found);
  }
  const token = sessionStorage.getItem(STORED_TOKEN);
  if (token) {
    sessionStorage.removeItem(STORED_TOKEN);
    return keepToken(token);
  }
  const stored = sessionStorage.getItem(STORED_KEY);
  return stored && PROOF.test(stored) ? Promise.resolve(stored) : undefined;
}

/** Derives the key of a token and stores it for this tab; the token itself is not stored. */
export async function keepToken(token: string): Promise<PageKey> {
  const key = await derivePageKey(token, hostOrigin());
  sessionStorage.setItem(STORED_KEY, key);
  return key;
}

export function forgetKey(): void {
  sessionStorage.removeItem(STORED_KEY);
}

/** Opens a socket to the host, after the host has proved its identity. */
export async function openProvenSocket(key: PageKey): Promise<Socket> {
  const nonce = randomHex(NONCE_BYTES);
  const challenge = await askForProof(key, nonce);
  return openSocket(key, nonce, challenge);
}

async function askForProof(key: PageKey, nonce: string): Promise<string> {
  const address = new URL('proof', document.baseURI);
  address.searchParams.set('nonce', nonce);
  const response = await fetch(address, {
    method: 'POST',
    // The host refuses a request that a form of another site could send.
    headers: { 'content-type': 'application/json' },
    cache: 'no-store',
    credentials: 'omit',
    // An impostor cannot redirect the page.
    redirect: 'error',
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  // The host is running, but cannot answer now.
  if (response.status === 429 || response.status === 503) throw new Error(`the host is busy (${response.status})`);
  if (!response.ok) throw new NotProven(`the program at this address gave no proof (${response.status})`);
  const said = (await response.json().catch(() => undefined)) as { proof?: unknown; challenge?: unknown } | undefined;
  const { proof, challenge } = said ?? {};
  if (
    typeof challenge !== 'string' ||
    !CHALLENGE.test(challenge) ||
    proof !== (await proofs.host(key, nonce, challenge))
  )
    throw new NotProven('the program at this address does not know the token');
  return challenge;
}

async function openSocket(key: PageKey, nonce: string, challenge: string): Promise<Socket> {
  const [answer, expected] = await Promise.all([
    proofs.page(key, nonce, challenge),
    proofs.socket(key, nonce, challenge),
  ]);
  const address = new URL('ws', document.baseURI);
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
  for (const [name, value] of Object.entries({ challenge, answer, nonce })) address.searchParams.set(name, value);
  return new Promise((resolve, reject) => {
    const web = new WebSocket(address);
    const timer = setTimeout(() => web.close(), PATIENCE_MS);
    let proven = false;
    let listener: SocketListener | undefined;
    web.addEventListener('message', (event) => {
      if (typeof event.data !== 'string') return;
      if (proven) return listener?.message(event.data);
      clearTimeout(timer);
      if (proofIn(event.data) !== expected) {
        reject(new NotProven('the program at this address does not know the token'));
        return web.close();
      }
      proven = true;
      resolve({
        send: (message) => web.send(message),
        close: () => web.close(),
        listen: (given) => (listener = given),
      });
    });
    web.addEventListener('close', (event) => {
      clearTimeout(timer);
      const reason = event.reason || 'the connection ended';
      reject(new Error(reason));
      listener?.closed(reason);
    });
  });
}

/** The proof in a socket's first message. */
function proofIn(message: string): unknown {
  try {
    const { method, params } = JSON.parse(message) as { method?: unknown; params?: { proof?: unknown } };
    return method === 'x-grove/hostProof' ? params?.proof : undefined;
  } catch {
    return undefined;
  }
}
