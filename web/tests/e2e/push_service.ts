/** A push service and a webhook on loopback, and a browser's subscription with keys that the test has. */

import { createECDH, createPublicKey, randomBytes, verify } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import ece from 'http_ece';
import type { BrowserContext } from 'playwright-core';

/** A request that the host has sent. */
export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface PushService {
  address: string;
  received: Received[];
  /** The next answers; 201 when there are none. */
  answers: number[];
  /** Waits until so many requests to a path have come, and returns them. */
  until(path: string, count: number): Promise<Received[]>;
  close(): Promise<void>;
}

export async function startPushService(): Promise<PushService> {
  const received: Received[] = [];
  const answers: number[] = [];
  const listeners = new Set<() => void>();
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(parts) });
      response.writeHead(answers.shift() ?? 201).end();
      for (const listener of listeners) listener();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    address: `http://127.0.0.1:${port}`,
    received,
    answers,
    until: (path, count) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = received.filter((request) => request.path === path);
          if (found.length < count) return;
          listeners.delete(look);
          resolve(found);
        };
        listeners.add(look);
        look();
      }),
    close: () => new Promise((resolve) => (server.close(() => resolve()), server.closeAllConnections())),
  };
}

/** A subscription as a browser makes it. Debian's browser has no push service, so the test stands in for the service. */
export class TestSubscription {
  readonly endpoint: string;
  readonly #key = createECDH('prime256v1');
  readonly #auth = randomBytes(16);

  constructor(service: PushService, path: string) {
    this.endpoint = service.address + path;
    this.#key.generateKeys();
  }

  /** Has the pages of a browser get this subscription. */
  async offer(context: BrowserContext): Promise<void> {
    const keys = { p256dh: this.#key.getPublicKey('base64url'), auth: this.#auth.toString('base64url') };
    await context.addInitScript(
      ({ endpoint, keys }) => {
        const stored = 'test-subscription-key';
        const subscription = (options: { applicationServerKey: ArrayBuffer }): object => ({
          endpoint,
          options,
          toJSON: () => ({ endpoint, keys }),
          unsubscribe: async () => {
            sessionStorage.removeItem(stored);
            return true;
          },
        });
        const known = (): object | null => {
          const key = sessionStorage.getItem(stored);
          return key === null
            ? null
            : subscription({ applicationServerKey: Uint8Array.from(key.split(',').map(Number)).buffer });
        };
        Object.assign(PushManager.prototype, {
          getSubscription: async () => known(),
          subscribe: async ({ applicationServerKey }: { applicationServerKey: Uint8Array }) => {
            sessionStorage.setItem(stored, applicationServerKey.join());
            return known();
          },
        });
      },
      { endpoint: this.endpoint, keys },
    );
  }

  /** Decrypts a message with a library that is not the host's. */
  read({ headers, body }: Received): unknown {
    if (headers['content-encoding'] !== 'aes128gcm') throw new Error(`${headers['content-encoding']} is not aes128gcm`);
    const plain = ece.decrypt(body, { version: 'aes128gcm', privateKey: this.#key, authSecret: this.#auth });
    return JSON.parse(plain.toString());
  }
}

/** Verifies the signature of a message, and returns its claims and the key. */
export function readSignature({ headers }: Received): { claims: Record<string, unknown>; key: string } {
  const [, token = '', key = ''] = /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(headers.authorization ?? '') ?? [];
  const [head = '', claims = '', signature = ''] = token.split('.');
  const point = Buffer.from(key, 'base64url');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'));
  const publicKey = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y } as never, format: 'jwk' });
  const signed = Buffer.from(`${head}.${claims}`);
  const options = { key: publicKey, dsaEncoding: 'ieee-p1363' as const };
  if (!verify('sha256', signed, options, Buffer.from(signature, 'base64url')))
    throw new Error('the signature is wrong');
  const decoded = (part: string): Record<string, unknown> =>
    JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
  if (decoded(head)['alg'] !== 'ES256') throw new Error('the algorithm is another one');
  return { claims: decoded(claims), key };
}
