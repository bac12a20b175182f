/** Getting in: the token, the ticket that it buys, and the socket that the ticket opens. */

import type { Socket, SocketListener } from './jsonrpc';

const STORED = 'grove.token';
const PATIENCE_MS = 10_000;

/** The host does not know the token. */
export class Unauthorized extends Error {
  override name = 'Unauthorized';
}

/**
 * Takes the token out of the address (`#token=…`), so that it is neither shown nor kept in the history, and remembers
 * it for this tab. Gives what this tab remembers.
 */
export function takeToken(): string | undefined {
  const found = /^#token=([^&]+)$/.exec(location.hash)?.[1];
  if (found) {
    keepToken(decodeURIComponent(found));
    history.replaceState(null, '', location.pathname + location.search);
  }
  return sessionStorage.getItem(STORED) ?? undefined;
}

export function keepToken(token: string): void {
  sessionStorage.setItem(STORED, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(STORED);
}

/** A ticket is good for one socket: browsers cannot send the token itself with one. */
export async function buyTicket(token: string): Promise<string> {
  const response = await fetch(new URL('ticket', document.baseURI), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    cache: 'no-store',
    credentials: 'omit',
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (response.status === 401 || response.status === 403) throw new Unauthorized('the host does not know this token');
  if (!response.ok) throw new Error(`the host gave no ticket (${response.status})`);
  return ((await response.json()) as { ticket: string }).ticket;
}

export function openSocket(ticket: string): Promise<Socket> {
  const address = new URL('ws', document.baseURI);
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
  address.searchParams.set('ticket', ticket);
  return new Promise((resolve, reject) => {
    const web = new WebSocket(address);
    const timer = setTimeout(() => web.close(), PATIENCE_MS);
    let listener: SocketListener | undefined;
    web.addEventListener('open', () => {
      clearTimeout(timer);
      resolve({
        send: (message) => web.send(message),
        close: () => web.close(),
        listen: (given) => (listener = given),
      });
    });
    web.addEventListener('message', (event) => {
      if (typeof event.data === 'string') listener?.message(event.data);
    });
    web.addEventListener('close', (event) => {
      clearTimeout(timer);
      const reason = event.reason || 'the connection ended';
      reject(new Error(reason));
      listener?.closed(reason);
    });
  });
}
