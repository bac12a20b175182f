/**
 * Access to the host. Page and host prove to each other that they know the token, and neither sends it.
 *
 * While the host is down, any program may listen on its port. So the page stores a key that is derived from the token
 * and its own origin, requests a proof over a nonce before it sends anything else, and checks a second proof on the
 * WebSocket before it uses it. Only the host of that token can create them, and only for the address of this page.
 *
 * A link of `grove open` has a code that is good once, for a minute: the page exchanges it for a token of its own.
 */

import { decoded } from '../text/format';
import { fromHex, hmacSha256, sha256, toHex } from './hmac';
import type { Socket, SocketListener } from './jsonrpc';
import { randomHex } from './random';

const STORED_KEY = 'grove.pageKey';
/** The key under which pages of earlier versions stored the token itself. */
const STORED_TOKEN = 'grove.token';
const PATIENCE_MS = 10_000;
const NONCE_BYTES = 32;
const CHALLENGE = /^[\w-]{16,128}$/;

/** The program at the host's address did not prove that it knows the token. Nothing was sent to it. */
export class NotProven extends Error {
  override name = 'NotProven';
}

/** The key of this origin's pages. The token cannot be derived from it. */
export interface PageKey {
  /** In hexadecimal. */
  key: string;
  /** The public id of a named token or a code; absent for the host's own token. */
  id?: string;
}

/** A named token (`gt`) or a one-time code (`gc`): its public id, and its secret. */
const NAMED = /^g[tc]([0-9a-f]{16})[0-9a-f]{64}$/;
const STORED = /^(?:([0-9a-f]{16}):)?([0-9a-f]{64})$/;

/** The inputs of both sides' proofs. The host has the same names in `page_access.rs` and `tokens/secret.rs`. */
export const derivePageKey = async (token: string, origin: string): Promise<string> =>
  toHex(await hmacSha256(new TextEncoder().encode(shared(token)), `grove page key 1\n${origin}\n`));
export const proofs = {
  host: (key: string, nonce: string, challenge: string) => sign(key, `grove host proof 1\n${nonce}\n${challenge}`),
  page: (key: string, nonce: string, challenge: string) => sign(key, `grove page answer 1\n${nonce}\n${challenge}`),
  socket: (key: string, nonce: string, challenge: string) => sign(key, `grove socket proof 1\n${nonce}\n${challenge}`),
  pairing: (key: string, challenge: string, token: string) =>
    sign(key, `grove pairing proof 1\n${challenge}\n${token}`),
};

/** The secret that page and host both have: the host keeps a digest of a named token or a code. */
function shared(token: string): string {
  return NAMED.test(token) ? toHex(sha256(new TextEncoder().encode(`grove token verifier 1\n${token}`))) : token;
}

async function keyOf(token: string): Promise<PageKey> {
  const key = await derivePageKey(token, hostOrigin());
  const id = NAMED.exec(token)?.[1];
  return id === undefined ? { key } : { key, id };
}

async function sign(key: string, message: string): Promise<string> {
  return toHex(await hmacSha256(fromHex(key), message));
}

/**
 * The storage of the key. A certificate protects the pages of an `https` origin; any program of this machine may serve
 * a page at a loopback port that is free, so there the key belongs to the tab.
 */
function storage(): Storage {
  return location.protocol === 'https:' ? localStorage : sessionStorage;
}

/** The host's origin. During development the page's own origin is another one. */
function hostOrigin(): string {
  return import.meta.env.DEV ? (import.meta.env['VITE_GROVE_URL'] ?? location.origin) : location.origin;
}

/**
 * Removes the token or code from the address (`#token=…`, `#code=…`), so that it is neither shown nor kept in the
 * history, and returns the key: the token's, that of a new token for the code, or the stored one.
 */
export function takeKey(): Promise<PageKey> | undefined {
  const [, kind, found] = /^#(token|code)=([^&]+)$/.exec(location.hash) ?? [];
  if (kind && found) {
    history.replaceState(null, '', location.pathname + location.search);
    return enter(decoded(found) ?? found);
  }
  const token = sessionStorage.getItem(STORED_TOKEN);
  if (token) {
    sessionStorage.removeItem(STORED_TOKEN);
    return enter(token);
  }
  const [, id, key] = STORED.exec(storage().getItem(STORED_KEY) ?? '') ?? [];
  return key === undefined ? undefined : Promise.resolve(id === undefined ? { key } : { key, id });
}

/** Takes a token or a one-time code that a person has given. */
export function enter(secret: string): Promise<PageKey> {
  return secret.startsWith('gc') && NAMED.test(secret) ? pair(secret) : keepToken(secret);
}

/** Derives the key of a token and stores it; the token itself is not stored. */
export async function keepToken(token: string): Promise<PageKey> {
  const page = await keyOf(token);
  storage().setItem(STORED_KEY, page.id === undefined ? page.key : `${page.id}:${page.key}`);
  return page;
}

export function forgetKey(): void {
  storage().removeItem(STORED_KEY);
}

/** Exchanges a one-time code for a token of this page's own, after both sides have proved that they know the code. */
async function pair(code: string): Promise<PageKey> {
  const page = await keyOf(code);
  const nonce = randomHex(NONCE_BYTES);
  const challenge = await askForProof(page, nonce);
  const answer = await proofs.page(page.key, nonce, challenge);
  const response = await fetch(new URL('pair', document.baseURI), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code: page.id, challenge, answer, nonce }),
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (!response.ok) throw new NotProven(`the code is not accepted (${response.status})`);
  const said = (await response.json().catch(() => undefined)) as { token?: unknown; proof?: unknown } | undefined;
  const { token, proof } = said ?? {};
  if (typeof token !== 'string' || !NAMED.test(token) || proof !== (await proofs.pairing(page.key, challenge, token)))
    throw new NotProven('the program at this address does not know the code');
  return keepToken(token);
}

/** Opens a socket to the host, after the host has proved its identity. */
export async function openProvenSocket(page: PageKey): Promise<Socket> {
  const nonce = randomHex(NONCE_BYTES);
  const challenge = await askForProof(page, nonce);
  return openSocket(page, nonce, challenge);
}

async function askForProof({ key, id }: PageKey, nonce: string): Promise<string> {
  const address = new URL('proof', document.baseURI);
  address.searchParams.set('nonce', nonce);
  if (id !== undefined) address.searchParams.set('token', id);
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

async function openSocket({ key, id }: PageKey, nonce: string, challenge: string): Promise<Socket> {
  const [answer, expected] = await Promise.all([
    proofs.page(key, nonce, challenge),
    proofs.socket(key, nonce, challenge),
  ]);
  const address = new URL('ws', document.baseURI);
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
  const query = { challenge, answer, nonce, ...(id === undefined ? {} : { token: id }) };
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
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
