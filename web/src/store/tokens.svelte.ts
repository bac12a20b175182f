/** The tokens of the host, and the codes with which devices get one. */

import type { PairingCode, TokenRow } from '../wire/administration';
import { Loaded, messageOf, type OwnRequests } from './loaded.svelte';

/** The scopes, in the order in which they are shown. */
export const SCOPES = ['read', 'prompt', 'approve', 'terminal', 'folders', 'admin'] as const;
export type ScopeName = (typeof SCOPES)[number];

/** The pause between two questions whether a code was used. */
const POLL_MS = 2_000;

interface TokenList {
  tokens: TokenRow[];
}

export class Tokens {
  readonly list: Loaded<TokenList>;
  #client: OwnRequests;

  constructor(client: OwnRequests) {
    this.#client = client;
    this.list = new Loaded(() => client.requestOwn('x-grove/tokens/list', {}) as Promise<TokenList>);
  }

  /** Makes a token, and returns its secret, which the host does not keep. */
  async add(name: string, scopes: readonly string[], expiresInMs: number | undefined): Promise<string> {
    const wanted = { name, scopes: [...scopes], ...(expiresInMs === undefined ? {} : { expiresInMs }) };
    const { token } = (await this.#client.requestOwn('x-grove/tokens/add', wanted)) as { token: string };
    await this.list.load();
    return token;
  }

  /** Replaces the secret of a token, and returns the new one. */
  async rotate(name: string): Promise<string> {
    const { token } = (await this.#client.requestOwn('x-grove/tokens/rotate', { name })) as { token: string };
    await this.list.load();
    return token;
  }

  async revoke(name: string): Promise<void> {
    await this.#client.requestOwn('x-grove/tokens/revoke', { name });
    await this.list.load();
  }

  pair(): Pairing {
    return new Pairing(this, this.#client);
  }
}

/** A code for another device, renewed on request, until the device has used it. */
export class Pairing {
  code = $state.raw<string | undefined>();
  /** The time until which the code is good. */
  endsAt = $state(0);
  problem = $state<string | undefined>();
  /** The token of the device that has used the code. */
  paired = $state<string | undefined>();
  #tokens: Tokens;
  #client: OwnRequests;
  #known: Set<string> | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(tokens: Tokens, client: OwnRequests) {
    this.#tokens = tokens;
    this.#client = client;
  }

  /** Issues a code. An earlier one stays good until its time. */
  async renew(): Promise<void> {
    try {
      if (!this.#known) {
        await this.#tokens.list.load();
        this.#known = new Set(this.#tokens.list.value?.tokens.map((token) => token.name));
      }
      const code = (await this.#client.requestOwn('x-grove/tokens/issueCode', {})) as PairingCode;
      this.code = code.secret;
      this.endsAt = Date.now() + code.expiresInMs;
      this.problem = undefined;
      this.#timer ??= setInterval(() => void this.#look(), POLL_MS);
    } catch (error) {
      this.problem = messageOf(error);
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.code = undefined;
  }

  async #look(): Promise<void> {
    await this.#tokens.list.load();
    const found = this.#tokens.list.value?.tokens.find((token) => !this.#known?.has(token.name));
    if (!found || this.#timer === undefined) return;
    this.paired = found.name;
    this.close();
  }
}

/** The address that a device opens with a code. */
export function pairingLink(base: string, code: string): string {
  return `${base.replace(/[?#].*$/, '')}#code=${code}`;
}

/** Whether other machines cannot reach an address, since it is this machine’s own. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.');
}
