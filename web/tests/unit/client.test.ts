/** The page's side of the protocol against a host that the test plays. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NotProven } from '../../src/protocol/access';
import { waitBefore } from '../../src/protocol/backoff';
import { type Channel, Client, type ClientEvents, type Rejection } from '../../src/protocol/client';
import type { Status } from '../../src/protocol/connection';
import type { Socket, SocketListener } from '../../src/protocol/jsonrpc';
import type { ActionEnvelope, ChatState, SessionState, Action } from '../../src/wire/types';

const CHAT = 'ahp-chat:/1';
const SESSION = 'ahp-session:/1';
const ROOT = 'ahp-root://';

type Message = { id?: number; method: string; params: Record<string, unknown> };

/** The host's end of one connection. */
class FakeSocket implements Socket {
  sent: Message[] = [];
  onMessage: (message: string) => void = () => {};
  onClose: (reason: string) => void = () => {};
  listen(listener: SocketListener): void {
    this.onMessage = (message) => listener.message(message);
    this.onClose = (reason) => listener.closed(reason);
  }
  send(message: string): void {
    this.sent.push(JSON.parse(message) as Message);
  }
  close(): void {}

  /** The last message of this method, which must exist. */
  last(method: string): Message {
    const found = this.sent.findLast((message) => message.method === method);
    if (!found) throw new Error(`no ${method} among ${this.sent.map((m) => m.method).join(', ')}`);
    return found;
  }
  async answer(method: string, result: unknown): Promise<void> {
    this.onMessage(JSON.stringify({ jsonrpc: '2.0', id: this.last(method).id, result }));
    await settled();
  }
  async fail(method: string, code: number, message = 'no'): Promise<void> {
    this.onMessage(JSON.stringify({ jsonrpc: '2.0', id: this.last(method).id, error: { code, message } }));
    await settled();
  }
  action(envelope: ActionEnvelope): void {
    this.onMessage(JSON.stringify({ jsonrpc: '2.0', method: 'action', params: envelope }));
  }
  dispatched(): { clientSeq: number; type: string }[] {
    return this.sent
      .filter((message) => message.method === 'dispatchAction')
      .map(({ params }) => ({ clientSeq: params['clientSeq'] as number, type: (params['action'] as Action).type }));
  }
}

const settled = (): Promise<void> => vi.advanceTimersByTimeAsync(0).then(() => {});

const chatState = (more: Partial<ChatState> = {}): ChatState => ({
  resource: CHAT,
  title: 'Chat',
  status: 1,
  modifiedAt: '2026-01-01T00:00:00.000Z',
  turns: [],
  ...more,
});
const sessionState = (more: Partial<SessionState> = {}): SessionState => ({
  provider: 'scripted',
  title: 'Session',
  status: 1,
  lifecycle: 'ready',
  activeClients: [],
  chats: [],
  ...more,
});
const root = { resource: ROOT, fromSeq: 5, state: { agents: [] } };
const startTurn = (turnId: string): Action => ({
  type: 'chat/turnStarted',
  turnId,
  startedAt: '2026-01-01T00:00:00.000Z',
  message: { text: 'hello', origin: { kind: 'user' } },
});

let sockets: FakeSocket[];
let statuses: Status[];
let rejections: Rejection[];
let connected: number;
let prove: () => Promise<void>;
let client: Client;
const socket = (): FakeSocket => sockets.at(-1)!;

beforeEach(() => {
  vi.useFakeTimers();
  sockets = [];
  statuses = [];
  rejections = [];
  connected = 0;
  prove = () => Promise.resolve();
  const events: ClientEvents = {
    statusChanged: (status) => statuses.push(status),
    introduced: () => {},
    connected: () => (connected += 1),
    notification: () => {},
    rejected: (rejection) => rejections.push(rejection),
  };
  const access = {
    openSocket: async () => {
      await prove();
      const opened = new FakeSocket();
      sockets.push(opened);
      return opened as Socket;
    },
  };
  client = new Client(access, events, 'me', () => 0);
});

afterEach(() => {
  client.stop();
  vi.useRealTimers();
});

async function connect(): Promise<void> {
  client.open('root', ROOT, () => {});
  client.start();
  await settled();
  await socket().answer('initialize', { protocolVersion: '1.0.0', serverSeq: 5, snapshots: [root] });
}

async function openChat(state = chatState(), fromSeq = 5): Promise<Channel<'chat'>> {
  const chat = client.open('chat', CHAT, () => {});
  await settled();
  await socket().answer('subscribe', { snapshot: { resource: CHAT, fromSeq, state } });
  return chat;
}

/** The connection breaks, and the next one opens. */
async function breakLine(): Promise<void> {
  socket().onClose('broken');
  await vi.advanceTimersByTimeAsync(30_000);
}

describe('connecting', () => {
  it('offers 1.0.0 and subscribes to the root with the handshake', async () => {
    await connect();
    expect(sockets[0]!.sent[0]).toMatchObject({
      method: 'initialize',
      params: { channel: ROOT, protocolVersions: ['1.0.0'], clientId: 'me', initialSubscriptions: [ROOT] },
    });
    expect(statuses.at(-1)).toEqual({ kind: 'online' });
    expect(connected).toBe(1);
  });

  it('asks for another token when no host ever proved that it knows this one', async () => {
    prove = () => Promise.reject(new NotProven('no'));
    client.start();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(statuses.at(-1)).toEqual({ kind: 'unauthorized' });
    expect(sockets).toEqual([]);
  });

  it('waits for its host while another program answers in its place', async () => {
    await connect();
    prove = () => Promise.reject(new NotProven('no'));
    await breakLine();
    expect(statuses.at(-1)).toMatchObject({ kind: 'waiting', unproven: true });
    expect(sockets).toHaveLength(1);
    prove = () => Promise.reject(new Error('down'));
    await vi.advanceTimersByTimeAsync(30_000);
    expect(statuses.at(-1)).toMatchObject({ kind: 'waiting', unproven: false });
    prove = () => Promise.resolve();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(sockets).toHaveLength(2);
  });

  it('says why when the host speaks another version, and does not try again', async () => {
    client.start();
    await settled();
    await socket().fail('initialize', -32005, 'only 2.0.0');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(statuses.at(-1)).toEqual({ kind: 'refused', reason: 'only 2.0.0' });
    expect(sockets).toHaveLength(1);
  });

  it('tries again, ever more slowly, until it works', async () => {
    prove = () => Promise.reject(new Error('down'));
    client.start();
    await vi.advanceTimersByTimeAsync(60_000);
    const waits = statuses.flatMap((s) => (s.kind === 'waiting' ? [s.attempt] : []));
    expect(waits.length).toBeGreaterThan(5);
    expect(waits.length).toBeLessThan(15);
    prove = () => Promise.resolve();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(sockets).toHaveLength(1);
  });

  it('waits differently long in different pages', () => {
    expect(waitBefore(3, () => 0)).toBe(1600);
    expect(waitBefore(3, () => 1)).toBe(3200);
    expect(waitBefore(50, () => 1)).toBe(20_000);
  });

  it('leaves a line that is silent and does not answer a ping', async () => {
    await connect();
    await vi.advanceTimersByTimeAsync(21_000);
    expect(socket().last('ping').params).toEqual({ channel: ROOT });
    expect(sockets).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(11_000);
    expect(sockets).toHaveLength(2);
  });

  it('refuses what the host asks of it', async () => {
    await connect();
    socket().onMessage(JSON.stringify({ jsonrpc: '2.0', id: 'h1', method: 'resourceRead', params: {} }));
    expect(socket().sent.at(-1)).toMatchObject({ id: 'h1', error: { code: -32601 } });
  });
});

describe('channels', () => {
  it('apply actions that come after their snapshot, in whatever order both were asked for', async () => {
    await connect();
    const chat = client.open('chat', CHAT, () => {});
    await settled();
    socket().action({ channel: CHAT, serverSeq: 6, action: startTurn('held') });
    expect(chat.state).toBeUndefined();
    await socket().answer('subscribe', { snapshot: { resource: CHAT, fromSeq: 5, state: chatState() } });
    expect(chat.state?.activeTurn?.id).toBe('held');
  });

  it('say why they cannot be shown', async () => {
    await connect();
    const chat = client.open('chat', CHAT, () => {});
    await settled();
    await socket().fail('subscribe', -32001, 'there is no such chat');
    expect(chat.problem).toBe('there is no such chat');
  });

  it('are shared, and unsubscribed when nobody has them open', async () => {
    await connect();
    const one = await openChat();
    const two = client.open('chat', CHAT, () => {});
    expect(two.state).toBe(one.state);
    one.close();
    expect(socket().sent.some((message) => message.method === 'unsubscribe')).toBe(false);
    two.close();
    expect(socket().last('unsubscribe').params).toEqual({ channel: CHAT });
  });

  it('that are opened again while the first answer is under way stay open', async () => {
    await connect();
    client.open('chat', CHAT, () => {}).close();
    const first = socket().last('subscribe').id;
    const chat = client.open('chat', CHAT, () => {});
    socket().onMessage(JSON.stringify({ id: first, result: { snapshot: { resource: CHAT, fromSeq: 5, state: {} } } }));
    await settled();
    await socket().answer('subscribe', { snapshot: { resource: CHAT, fromSeq: 5, state: chatState() } });
    expect(chat.state?.title).toBe('Chat');
    expect(socket().sent.at(-1)?.method).toBe('subscribe');
  });
});

describe('own actions', () => {
  it('show at once, and what is refused is taken back with its reason', async () => {
    await connect();
    const chat = await openChat();
    const clientSeq = client.dispatch(CHAT, startTurn('mine'));
    expect(chat.state?.activeTurn?.id).toBe('mine');
    expect(chat.pending).toHaveLength(1);
    socket().action({
      channel: CHAT,
      serverSeq: 5,
      action: startTurn('mine'),
      origin: { clientId: 'me', clientSeq },
      rejectionReason: 'a turn is running',
    });
    expect(chat.state?.activeTurn).toBeUndefined();
    expect(rejections).toMatchObject([{ channel: CHAT, reason: 'a turn is running' }]);
  });

  it('on a chat that is not open are sent, and their refusal is heard', async () => {
    await connect();
    const clientSeq = client.dispatch(CHAT, startTurn('elsewhere'));
    expect(socket().dispatched()).toEqual([{ clientSeq, type: 'chat/turnStarted' }]);
    socket().action({
      channel: CHAT,
      serverSeq: 5,
      action: startTurn('elsewhere'),
      origin: { clientId: 'me', clientSeq },
      rejectionReason: 'no',
    });
    expect(rejections).toHaveLength(1);
  });
});

describe('coming back', () => {
  it('asks for what was missed, and applies it', async () => {
    await connect();
    const chat = await openChat();
    socket().action({ channel: CHAT, serverSeq: 8, action: startTurn('t') });
    await breakLine();
    expect(socket().sent[0]).toMatchObject({
      method: 'reconnect',
      params: { clientId: 'me', lastSeenServerSeq: 8, subscriptions: [ROOT, CHAT] },
    });
    const missed: ActionEnvelope[] = [
      { channel: CHAT, serverSeq: 8, action: startTurn('t') },
      { channel: CHAT, serverSeq: 9, action: { type: 'chat/turnComplete', turnId: 't', duration: 5 } },
    ];
    await socket().answer('reconnect', { type: 'replay', actions: missed, missing: [] });
    expect(chat.state?.turns).toHaveLength(1);
    expect(chat.state?.activeTurn).toBeUndefined();
    expect(connected).toBe(2);
    socket().action({ channel: CHAT, serverSeq: 10, action: startTurn('next') });
    expect(chat.state?.activeTurn?.id).toBe('next');
  });

  it('requests everything again if the host no longer knows it', async () => {
    await connect();
    const chat = await openChat();
    await breakLine();
    await socket().fail('reconnect', -32008);
    expect(socket().last('initialize').params['initialSubscriptions']).toEqual([ROOT, CHAT]);
    const snapshots = [root, { resource: CHAT, fromSeq: 40, state: chatState({ title: 'New' }) }];
    await socket().answer('initialize', { protocolVersion: '1.0.0', serverSeq: 40, snapshots });
    expect(chat.state?.title).toBe('New');
    expect(statuses.at(-1)).toEqual({ kind: 'online' });
  });

  it('takes snapshots where too much was missed', async () => {
    await connect();
    const chat = await openChat();
    await breakLine();
    const snapshots = [root, { resource: CHAT, fromSeq: 400, state: chatState({ title: 'Later' }) }];
    await socket().answer('reconnect', { type: 'snapshot', snapshots });
    expect(chat.state?.title).toBe('Later');
  });

  it('says of a channel that is gone that it is gone', async () => {
    await connect();
    const chat = await openChat();
    await breakLine();
    await socket().answer('reconnect', { type: 'replay', actions: [], missing: [CHAT] });
    await socket().fail('subscribe', -32001, 'there is no such chat');
    expect(chat.problem).toBe('there is no such chat');
  });

  it('sends what was said without a connection', async () => {
    await connect();
    const chat = await openChat();
    socket().onClose('broken');
    client.dispatch(CHAT, startTurn('offline'));
    expect(chat.state?.activeTurn?.id).toBe('offline');
    await vi.advanceTimersByTimeAsync(30_000);
    await socket().answer('reconnect', { type: 'replay', actions: [], missing: [] });
    expect(socket().dispatched()).toMatchObject([{ type: 'chat/turnStarted' }]);
    expect(chat.state?.activeTurn?.id).toBe('offline');
  });

  it('does not say again what arrived before the line broke', async () => {
    await connect();
    const chat = await openChat();
    const clientSeq = client.dispatch(CHAT, startTurn('mine'));
    await breakLine();
    const echo = { channel: CHAT, serverSeq: 6, action: startTurn('mine'), origin: { clientId: 'me', clientSeq } };
    await socket().answer('reconnect', { type: 'replay', actions: [echo], missing: [] });
    expect(socket().dispatched()).toEqual([]);
    expect(chat.pending).toEqual([]);
    expect(chat.state?.activeTurn?.id).toBe('mine');
  });

  it('does not say again what a snapshot shows to be done', async () => {
    await connect();
    const chat = await openChat();
    client.dispatch(CHAT, startTurn('mine'));
    client.dispatch(CHAT, {
      type: 'chat/pendingMessageSet',
      kind: 'queued',
      id: 'q',
      message: { text: 'next', origin: { kind: 'user' } },
    });
    await breakLine();
    await socket().fail('reconnect', -32008);
    const message = { text: 'next', origin: { kind: 'user' as const } };
    const turn = { id: 'mine', message, responseParts: [], state: 'complete' as const };
    const state = chatState({
      turns: [turn],
      activeTurn: { id: 'from-queue', startedAt: '', message, responseParts: [] },
    });
    const snapshots = [root, { resource: CHAT, fromSeq: 40, state }];
    await socket().answer('initialize', { protocolVersion: '1.0.0', serverSeq: 40, snapshots });
    expect(socket().dispatched()).toEqual([]);
    expect(chat.pending).toEqual([]);
  });

  it('says again a rename that a restarted host does not show', async () => {
    await connect();
    const session = client.open('session', SESSION, () => {});
    await settled();
    await socket().answer('subscribe', { snapshot: { resource: SESSION, fromSeq: 5, state: sessionState() } });
    client.dispatch(SESSION, { type: 'session/titleChanged', title: 'Renamed' });
    await breakLine();
    await socket().fail('reconnect', -32008);
    const snapshots = [root, { resource: SESSION, fromSeq: 7, state: sessionState() }];
    await socket().answer('initialize', { protocolVersion: '1.0.0', serverSeq: 7, snapshots });
    expect(session.state?.title).toBe('Renamed');
    expect(socket().dispatched()).toEqual([{ clientSeq: 2, type: 'session/titleChanged' }]);
  });
});
