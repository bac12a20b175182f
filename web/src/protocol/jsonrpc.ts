/** JSON-RPC 2.0 over a socket: requests with their responses, notifications in both directions. */

import { ErrorCodes } from '../wire/protocol';
import type { ClientNotifications, Notifications, Requests, Results } from '../wire/types';

/** A reliable, ordered stream of complete messages. */
export interface Socket {
  send(message: string): void;
  close(): void;
  /** Sets the reader. Called once, right after the socket is open. */
  listen(listener: SocketListener): void;
}

export interface SocketListener {
  message(message: string): void;
  closed(reason: string): void;
}

export interface PeerHandlers {
  notification<M extends keyof Notifications>(method: M, params: Notifications[M]): void;
  closed(reason: string): void;
}

/** The host answered a request with an error. */
export class RpcError extends Error {
  override name = 'RpcError';
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

/** The connection ended, or the response took too long, so the outcome of the request is unknown. */
export class NoAnswer extends Error {
  override name = 'NoAnswer';
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
  timer: ReturnType<typeof setTimeout>;
}

interface Incoming {
  id?: number | string | null;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

const PATIENCE_MS = 30_000;

export class Peer {
  #socket: Socket;
  #handlers: PeerHandlers;
  #waiting = new Map<number, Waiting>();
  #nextId = 1;
  #closed = false;
  /** The time of the last received message. */
  lastHeard = Date.now();

  constructor(socket: Socket, handlers: PeerHandlers) {
    this.#socket = socket;
    this.#handlers = handlers;
    socket.listen({
      message: (message) => this.#receive(message),
      closed: (reason) => this.#end(reason),
    });
  }

  request<M extends keyof Requests>(method: M, params: Requests[M], patience = PATIENCE_MS): Promise<Results[M]> {
    if (this.#closed) return Promise.reject(new NoAnswer('not connected'));
    const id = this.#nextId++;
    return new Promise<Results[M]>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new NoAnswer(`the host did not answer ${method} in time`));
      }, patience);
      this.#waiting.set(id, { resolve: resolve as (result: unknown) => void, reject, timer });
      this.#send({ id, method, params });
    });
  }

  notify<M extends keyof ClientNotifications>(method: M, params: ClientNotifications[M]): void {
    if (!this.#closed) this.#send({ method, params });
  }

  close(reason: string): void {
    this.#socket.close();
    this.#end(reason);
  }

  #send(message: object): void {
    this.#socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
  }

  #receive(text: string): void {
    if (this.#closed) return;
    this.lastHeard = Date.now();
    let message: Incoming;
    try {
      message = JSON.parse(text) as Incoming;
    } catch {
      return this.close('the host sent something that is not JSON');
    }
    if (message.method !== undefined) {
      if (message.id === undefined) {
        this.#handlers.notification(message.method as keyof Notifications, message.params as never);
      } else {
        // The page has no methods for the host.
        this.#send({ id: message.id, error: { code: ErrorCodes.MethodNotFound, message: 'method not found' } });
      }
      return;
    }
    const waiting = this.#waiting.get(message.id as number);
    if (!waiting) return;
    this.#waiting.delete(message.id as number);
    clearTimeout(waiting.timer);
    if (message.error) waiting.reject(new RpcError(message.error.code, message.error.message, message.error.data));
    else waiting.resolve(message.result);
  }

  #end(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const waiting of this.#waiting.values()) {
      clearTimeout(waiting.timer);
      waiting.reject(new NoAnswer(reason));
    }
    this.#waiting.clear();
    this.#handlers.closed(reason);
  }
}
