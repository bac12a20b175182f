// @vitest-environment jsdom
import { type Component, flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Client } from '../../src/protocol/client';
import { BranchStore } from '../../src/store/branches.svelte';
import { Host } from '../../src/store/host.svelte';
import { message } from '../../src/store/intents';
import BranchSwitcher from '../../src/ui/session/BranchSwitcher.svelte';
import ChatTabs from '../../src/ui/session/ChatTabs.svelte';
import ContextMeter from '../../src/ui/session/ContextMeter.svelte';
import Summarizing from '../../src/ui/session/Summarizing.svelte';
import type { ChatState, ChatSummary, Turn } from '../../src/wire/types';
import Within from './Within.svelte';

const CHAT = 'ahp-chat:/1';
let host: Host;
let asked: [string, Record<string, unknown>][];
let answers: Record<string, (params: Record<string, unknown>) => unknown>;
let mounted: Record<string, unknown>[];

beforeEach(() => {
  vi.useFakeTimers();
  sessionStorage.clear();
  document.body.replaceChildren();
  [asked, answers, mounted] = [[], {}, []];
  host = new Host({ openSocket: () => Promise.reject(new Error('never connected')) });
  vi.spyOn(host.client as Client, 'requestOwn').mockImplementation(async (method, params) => {
    asked.push([method, params]);
    return answers[method]?.(params) ?? {};
  });
});
afterEach(async () => {
  await Promise.all(mounted.map((component) => unmount(component)));
  vi.useRealTimers();
});

function show(component: unknown, props: Record<string, unknown>): HTMLElement {
  const target = document.createElement('div');
  document.body.append(target);
  mounted.push(mount(Within, { target, props: { host, of: component as Component, props } }));
  flushSync();
  return target;
}

const turn = (id: string, more: Partial<Turn> = {}): Turn => ({
  id,
  state: 'complete',
  message: message(id),
  responseParts: [],
  ...more,
});
const chatState = (more: Partial<ChatState>): ChatState => ({
  resource: CHAT,
  title: '',
  status: 1,
  modifiedAt: '',
  turns: [],
  ...more,
});
const row = (id: string, more: object): object => ({
  id,
  parent: null,
  depth: 0,
  role: 'user',
  hasChildren: true,
  ...more,
});
const named = (shown: Element, name: string): HTMLButtonElement =>
  [...shown.querySelectorAll('button')].find((button) => button.getAttribute('aria-label') === name)!;

describe('the versions of a message', () => {
  const users = [
    row('a', { time: 1, active: true, turn: 't1' }),
    row('b', { time: 2, turn: 't2' }),
    row('c', { time: 3, turn: 't3' }),
  ];
  const all = [
    row('a', { time: 1, active: true }),
    row('a1', { time: 2, depth: 1, role: 'assistant', hasChildren: false }),
    row('b', { time: 2 }),
    row('b1', { time: 4, depth: 1, role: 'assistant', hasChildren: false }),
    row('b2', { time: 9, depth: 1, role: 'assistant', hasChildren: false }),
    row('c', { time: 3, hasChildren: false }),
  ];

  async function loaded(): Promise<BranchStore> {
    answers['x-grove/tree'] = ({ filter }) => ({ rows: filter === 'all' ? all : users });
    const branches = new BranchStore(host, CHAT);
    branches.see(chatState({ turns: [turn('t1')] }));
    await vi.advanceTimersByTimeAsync(1_000);
    return branches;
  }
  const switcher = async (disabled = false): Promise<HTMLElement> =>
    show(BranchSwitcher, { turn: 't1', chat: CHAT, branches: await loaded(), disabled });

  it('are counted, and the next one is shown at its newest end', async () => {
    const shown = await switcher();
    expect(shown.textContent).toContain('1/3');
    expect(named(shown, 'Previous version').disabled).toBe(true);
    named(shown, 'Next version').click();
    await vi.advanceTimersByTimeAsync(1);
    expect(asked.at(-1)).toEqual(['x-grove/navigate', { channel: CHAT, entry: 'b2' }]);
  });

  it('are not switched while a turn runs', async () => {
    const shown = await switcher(true);
    expect(named(shown, 'Next version').disabled).toBe(true);
  });

  it('are loaded once for the same turns, and not while a turn runs', async () => {
    const branches = await loaded();
    const before = asked.length;
    branches.see(chatState({ turns: [turn('t1')], title: 'another state' }));
    branches.see(chatState({ turns: [turn('t1')], activeTurn: { ...turn('t9'), startedAt: '' } }));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(asked).toHaveLength(before);
    branches.see(chatState({ turns: [turn('t1'), turn('t2')] }));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(asked.length).toBeGreaterThan(before);
  });

  it('are waited for a few times only, if the log never has the newest turn', async () => {
    await loaded();
    asked = [];
    const branches = new BranchStore(host, CHAT);
    branches.see(chatState({ turns: [turn('unknown')] }));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toHaveLength(5);
  });

  it('without an answer come back into an empty prompt', async () => {
    answers['x-grove/navigate'] = () => ({ moved: true, text: 'the message of c' });
    const branches = await loaded();
    const shown = show(BranchSwitcher, { turn: 't2', chat: CHAT, branches, disabled: false });
    expect(shown.querySelector('button')).toBeNull();
    branches.branches = { ...branches.branches, alternatives: new Map([['t2', { entries: ['a', 'b', 'c'], at: 1 }]]) };
    flushSync();
    named(shown, 'Next version').click();
    await vi.advanceTimersByTimeAsync(1);
    expect(asked.at(-1)).toEqual(['x-grove/navigate', { channel: CHAT, entry: 'c' }]);
    expect(host.prompts.of(CHAT).text).toBe('the message of c');
  });
});

describe('the tabs of a session', () => {
  const chat = (resource: string, more: Partial<ChatSummary> = {}): ChatSummary => ({
    resource,
    title: resource,
    status: 1,
    modifiedAt: '',
    ...more,
  });
  const origin = { kind: 'tool', chat: 'main', toolCallId: 'c' } as const;
  const opened: string[] = [];
  const tabs = (chats: ChatSummary[], shown: string): HTMLElement =>
    show(ChatTabs, { chats, shown, main: 'main', open: (chat: string) => opened.push(chat), add: () => undefined });
  const labels = (shown: Element, list: string): string[] =>
    [...shown.querySelectorAll(`[aria-label="${list}"] [role=tab]`)].map((tab) =>
      tab.textContent!.replace(/\s+/g, ' ').trim(),
    );

  it('have the subagents of the shown chat below it, with what they do', () => {
    const chats = [
      chat('main'),
      chat('side'),
      chat('helper', { origin, status: 8 }),
      chat('other', { origin: { ...origin, chat: 'side' } }),
    ];
    const shown = tabs(chats, 'main');
    expect(labels(shown, 'Chats')).toEqual(['Main chat', 'side']);
    expect(labels(shown, 'Subagents')).toEqual(['helper Working']);
    expect(labels(tabs(chats, 'helper'), 'Subagents')).toEqual(['helper Working']);
    expect(labels(tabs(chats, 'side'), 'Subagents')).toEqual(['other']);
  });

  it('are not shown for one chat, and have no hidden ones', () => {
    expect(tabs([chat('main')], 'main').querySelector('[role=tab]')).toBeNull();
    expect(tabs([chat('main'), chat('x', { interactivity: 'hidden' })], 'main').querySelector('[role=tab]')).toBeNull();
  });

  it('never close the main chat, and move with the arrows', () => {
    const shown = tabs([chat('main'), chat('side')], 'main');
    expect(named(shown, 'Close this chat')).toBeUndefined();
    shown
      .querySelector('[aria-selected=true]')!
      .dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true, cancelable: true }));
    expect(opened.at(-1)).toBe('side');
    expect(named(tabs([chat('main'), chat('side')], 'side'), 'Close this chat')).toBeDefined();
  });
});

describe('a summary', () => {
  it('is stopped with Escape, unless the key was for something else', () => {
    show(Summarizing, { chat: CHAT });
    const handled = new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true });
    handled.preventDefault();
    window.dispatchEvent(handled);
    expect(asked).toEqual([]);
    window.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true }));
    expect(asked).toEqual([['x-grove/abort', { channel: CHAT }]]);
  });
});

describe('the use of the context', () => {
  const usage = (used: number): Turn['usage'] => ({
    _meta: { context: { used, size: 1_000 }, cost: { amount: 0.5, currency: 'USD' } },
  });

  it('is that of the newest turn that reported one', () => {
    const turns = [turn('a', { usage: usage(100) }), turn('b', { usage: usage(850) }), turn('c')];
    const shown = show(ContextMeter, { chat: chatState({ turns }) });
    expect(shown.textContent).toContain('85 %');
    expect(shown.querySelector('.full')).not.toBeNull();
    expect(shown.textContent).toContain('0.50 USD');
    expect(show(ContextMeter, { chat: chatState({}) }).textContent!.trim()).toBe('');
  });
});
