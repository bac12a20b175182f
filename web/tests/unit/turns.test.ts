// @vitest-environment jsdom
import { type Component, createRawSnippet, flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EarlierTurns } from '../../src/store/earlier.svelte';
import type { ChannelStore } from '../../src/store/channel.svelte';
import { Host } from '../../src/store/host.svelte';
import { rangesOf } from '../../src/ui/conversation/highlights';
import PinnedPlan from '../../src/ui/conversation/PinnedPlan.svelte';
import SessionUsage from '../../src/ui/conversation/SessionUsage.svelte';
import ToolCall from '../../src/ui/conversation/ToolCall.svelte';
import TurnView from '../../src/ui/conversation/TurnView.svelte';
import type { ActiveTurn, ChatState, ResponsePart, ToolCallState, Turn } from '../../src/wire/types';
import Within from './Within.svelte';

let host: Host;
let mounted: Record<string, unknown>[];

beforeEach(() => {
  document.body.replaceChildren();
  mounted = [];
  host = new Host({ openSocket: () => Promise.reject(new Error('never connected')) });
  vi.stubGlobal('matchMedia', () => ({ matches: false }));
});
afterEach(async () => {
  await Promise.all(mounted.map((component) => unmount(component)));
  vi.unstubAllGlobals();
});

function show(component: unknown, props: Record<string, unknown>): HTMLElement {
  const target = document.createElement('div');
  document.body.append(target);
  mounted.push(mount(Within, { target, props: { host, of: component as Component, props } }));
  flushSync();
  return target;
}
const words = (element: Element | null | undefined): string => element?.textContent?.replace(/\s+/g, ' ').trim() ?? '';
async function open(details: Element | null): Promise<void> {
  (details as HTMLDetailsElement).open = true;
  details!.dispatchEvent(new Event('toggle'));
  await new Promise((resolve) => setTimeout(resolve));
  flushSync();
}

const call = (id: string, more: object): ToolCallState =>
  ({
    toolCallId: id,
    toolName: 't',
    displayName: 'Read',
    invocationMessage: 'Read',
    confirmed: 'not-needed',
    status: 'completed',
    success: true,
    pastTenseMessage: '',
    ...more,
  }) as ToolCallState;
const read = (id: string, path: string, ranMs: number): ResponsePart => ({
  kind: 'toolCall',
  toolCall: call(id, { toolInput: JSON.stringify({ path }), _meta: { toolKind: 'read', ranMs } }),
});
const turn = (more: object): Turn => ({
  id: 't',
  state: 'complete',
  message: { text: 'Go', origin: { kind: 'user' } },
  responseParts: [],
  ...more,
});
const showTurn = (given: unknown, more = {}): HTMLElement =>
  show(TurnView, { turn: given, chat: 'ahp-chat:/1', unsent: false, ...more });

describe('reads in a row', () => {
  it('are a line with their files and time, and open to the calls', async () => {
    const parts = [read('1', '/w/a.rs', 300), read('2', '/w/b.rs', 200), read('3', '/w/c.rs', 500)];
    const shown = showTurn(turn({ responseParts: parts }));
    const run = shown.querySelector('details.run');
    expect(words(run?.querySelector('summary'))).toBe('Read 3 files a.rs, b.rs, c.rs 1.0 s');
    expect(shown.querySelectorAll('[aria-label="Tool Read"]')).toHaveLength(0);
    await open(run);
    expect(shown.querySelectorAll('[aria-label="Tool Read"]')).toHaveLength(3);
  });
});

describe('a call', () => {
  it('has its output in colours once it is opened, never as markup', async () => {
    const text = '\u001b[1;31m<img src=x onerror=alert(1)>\u001b[0m\n10 %\r100 %';
    const given = call('1', { toolInput: '{"command":"make"}', content: [{ type: 'text', text }] });
    const shown = show(ToolCall, { call: given, turnId: 't', chat: 'ahp-chat:/1' });
    expect(shown.querySelector('pre')).toBeNull();
    await open(shown.querySelector('details'));
    const output = shown.querySelector('pre.ansi')!;
    expect(output.textContent).toBe('<img src=x onerror=alert(1)>\n100 %');
    expect(output.querySelector('.fg-red.bold')?.textContent).toBe('<img src=x onerror=alert(1)>');
    expect(shown.querySelector('img')).toBeNull();
  });

  it('of long output shows its end, and all of it on demand', async () => {
    const text = Array.from({ length: 1_000 }, (_, n) => `line ${n}`).join('\n');
    const given = call('1', { toolInput: '{"command":"make"}', content: [{ type: 'text', text }] });
    const shown = show(ToolCall, { call: given, turnId: 't', chat: 'ahp-chat:/1' });
    await open(shown.querySelector('details'));
    const output = (): string => shown.querySelector('pre.ansi')!.textContent!;
    expect([output().startsWith('line 800\n'), output().endsWith('line 999')]).toEqual([true, true]);
    const more = [...shown.querySelectorAll('button')].find((button) => words(button) === 'Show all 1000 lines');
    more!.click();
    flushSync();
    expect(output().startsWith('line 0\n')).toBe(true);
  });

  it('says the exit code of a command that failed', () => {
    const content = (exitCode: number): object[] => [
      { type: 'terminal', title: 'make', resource: 'r', result: { exitCode } },
    ];
    const line = (exitCode: number): string => {
      const given = call('1', { content: content(exitCode) });
      return words(show(ToolCall, { call: given, turnId: 't', chat: 'ahp-chat:/1' }).querySelector('.status'));
    };
    expect(line(2)).toContain('Exit code 2');
    expect(line(0)).not.toContain('Exit');
  });

  it('that edits one file shows its size, and the lines once it is opened', async () => {
    host.read = async (uri) => ({ data: uri === 'c:/old' ? 'a\n' : 'b\n', encoding: 'utf-8' });
    const file = (content: string) => ({ uri: 'file:///w/a.rs', content: { uri: content } });
    const edit = { type: 'fileEdit', before: file('c:/old'), after: file('c:/new'), diff: { added: 12, removed: 2 } };
    const given = call('1', { displayName: 'Edit', content: [edit] });
    const shown = show(ToolCall, { call: given, turnId: 't', chat: 'ahp-chat:/1' });
    expect(words(shown.querySelector('summary .changed'))).toBe('+12 lines added, −2 lines removed');
    await open(shown.querySelector('details'));
    await vi.waitFor(() => expect(shown.querySelectorAll('.line.added')).toHaveLength(1));
  });
});

describe('a turn', () => {
  it('draws the beginning of a long prompt, and all of it on demand', () => {
    const text = 'word '.repeat(5_000);
    const shown = showTurn(turn({ message: { text, origin: { kind: 'user' } } }));
    expect(shown.querySelector('.text')!.textContent!.length).toBeLessThan(3_000);
    [...shown.querySelectorAll('button')].find((button) => words(button).startsWith('Show all'))!.click();
    flushSync();
    expect(shown.querySelector('.text')!.textContent).toBe(text);
  });

  it('has a place for actions beside its message and at its end', () => {
    const action = (name: string) =>
      createRawSnippet<[Turn]>((given) => ({ render: () => `<button>${name} ${given().id}</button>` }));
    const shown = showTurn(turn({}), { messageActions: action('Edit'), turnActions: action('Retry') });
    expect([...shown.querySelectorAll('.message-actions button:not([aria-label])')].map(words)).toEqual(['Edit t']);
    expect([...shown.querySelectorAll('.state .actions button:not([aria-label])')].map(words)).toEqual(['Retry t']);
  });

  it('that the address leads to is marked', () => {
    expect(showTurn(turn({}), { marked: true }).querySelector('article[aria-current]')).not.toBeNull();
    expect(showTurn(turn({})).querySelector('article[aria-current]')).toBeNull();
  });
});

describe('the plan above the prompt', () => {
  const plan = (...status: string[]): ResponsePart => ({
    kind: 'systemNotification',
    content: 'plan',
    _meta: { plan: status.map((status, n) => ({ content: `step ${n}`, priority: 'medium', status })) },
  });
  const line = (...parts: ResponsePart[]): string => {
    const { state: _none, ...active } = turn({ responseParts: parts });
    return words(show(PinnedPlan, { turn: active as ActiveTurn }).querySelector('summary'));
  };

  it('is the newest one, with what is being done', () => {
    expect(line(plan('pending', 'pending'), plan('completed', 'inProgress'))).toBe('Plan 1 of 2 done step 1');
  });

  it('is gone once everything is done, or the turn has ended', () => {
    expect(line(plan('completed', 'completed'))).toBe('');
    expect(words(show(PinnedPlan, { turn: undefined }))).toBe('');
  });
});

describe('the use of a session', () => {
  it('is that of its newest report', () => {
    const used = (used: number, amount?: number): object => ({
      usage: { _meta: { context: { used, size: 1_000 }, ...(amount && { cost: { amount, currency: 'USD' } }) } },
    });
    const shown = show(SessionUsage, { turns: [turn(used(100, 0.5)), turn(used(900)), turn({})], active: undefined });
    expect(words(shown)).toBe('Context 90 % full, 900 of 1k 0.50 USD');
    expect(words(show(SessionUsage, { turns: [turn({})], active: undefined }))).toBe('');
  });
});

describe('earlier turns', () => {
  const store = (cursors: (string | undefined)[]): { chat: ChannelStore<'chat'>; asked: string[] } => {
    const asked: string[] = [];
    const chat = { uri: 'c', state: { turnsNextCursor: cursors[0] } as ChatState } as unknown as ChannelStore<'chat'>;
    host.loadEarlierTurns = async (_chat, cursor) => {
      asked.push(cursor);
      if (cursor === 'broken') throw new Error('no');
      chat.state = { turnsNextCursor: cursors[asked.length] } as ChatState;
    };
    return { chat, asked };
  };

  it('come window by window, until what is looked for is there or nothing is left', async () => {
    const { chat, asked } = store(['a', 'b', 'c', undefined]);
    const earlier = new EarlierTurns(host, chat);
    expect(await earlier.loadUntil(() => asked.length === 2)).toBe(true);
    expect(asked).toEqual(['a', 'b']);
    expect(await earlier.loadUntil(() => false)).toBe(false);
    expect([asked, earlier.hasMore]).toEqual([['a', 'b', 'c'], false]);
  });

  it('that cannot be had end the attempt, with the reason', async () => {
    const { chat, asked } = store(['broken']);
    const earlier = new EarlierTurns(host, chat);
    expect(await earlier.loadUntil(() => false)).toBe(false);
    expect([asked, earlier.problem, earlier.loading]).toEqual([['broken'], 'no', false]);
  });
});

describe('the marks of a search', () => {
  it('are found across elements, and not in controls', () => {
    const element = document.createElement('div');
    element.append('One ne', Object.assign(document.createElement('b'), { textContent: 'edle' }), ' more ');
    element.append(Object.assign(document.createElement('button'), { textContent: 'needle' }), 'NEEDLE');
    const texts = rangesOf(element, 'needle').map((range) => range.toString());
    expect(texts).toEqual(['needle', 'NEEDLE']);
    expect(rangesOf(element, ' ')).toEqual([]);
  });
});

describe('the verb of a call', () => {
  const line = (more: object): string => {
    const given = call('1', { pastTenseMessage: undefined, ...more });
    return words(show(ToolCall, { call: given, turnId: 't', chat: 'ahp-chat:/1' }).querySelector('summary'));
  };

  it('is the word of the page for a call that is named by its kind, and is not said twice', () => {
    expect(line({ displayName: 'execute', toolInput: '{"command":"make"}', _meta: { toolKind: 'terminal' } })).toBe(
      'Command: Run make Done',
    );
    const edit = { displayName: 'edit', invocationMessage: 'Edit a.rs', _meta: { toolKind: 'edit' } };
    expect(line(edit)).toBe('Edit: Edit a.rs Done');
    expect(line({ displayName: 'Grep', invocationMessage: 'for x', _meta: { toolKind: 'search' } })).toBe(
      'Search: Grep for x Done',
    );
  });
});
