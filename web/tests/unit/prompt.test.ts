// @vitest-environment jsdom
import { type Component, flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Client } from '../../src/protocol/client';
import { branchesOf, type BranchRow, newestLeaf, rowsOf } from '../../src/state/branches';
import { tabOf, tabsOf } from '../../src/state/chats';
import { isVisibleInChat } from '../../src/state/visible';
import { isLongPaste, MOST_EMBEDDED, problemOf } from '../../src/store/attachments';
import { SETTLING_MS } from '../../src/store/cards.svelte';
import { Host } from '../../src/store/host.svelte';
import { message, steer } from '../../src/store/intents';
import { forgetDrafts, PAUSE_MS, Prompt, Prompts } from '../../src/store/prompt.svelte';
import { completeReference, referenced, typesReference } from '../../src/text/files';
import { sentTexts, step } from '../../src/text/history';
import { choose, initial } from '../../src/text/questions';
import { moved } from '../../src/text/queue';
import InputRequest from '../../src/ui/cards/InputRequest.svelte';
import Permission from '../../src/ui/cards/Permission.svelte';
import Queue from '../../src/ui/prompt/Queue.svelte';
import TurnActions from '../../src/ui/prompt/TurnActions.svelte';
import type {
  Action,
  ChatInputQuestion,
  ChatState,
  ChatSummary,
  MessageAttachment,
  ToolCallState,
  Turn,
} from '../../src/wire/types';
import Within from './Within.svelte';

const CHAT = 'ahp-chat:/1';
let host: Host;
let dispatched: { channel: string; action: Action }[];
let mounted: Record<string, unknown>[];

beforeEach(() => {
  vi.useFakeTimers();
  sessionStorage.clear();
  document.body.replaceChildren();
  dispatched = [];
  mounted = [];
  host = new Host({ openSocket: () => Promise.reject(new Error('never connected')) });
  vi.spyOn(host.client as Client, 'dispatch').mockImplementation((channel, action) =>
    dispatched.push({ channel, action }),
  );
  vi.stubGlobal('matchMedia', () => ({ matches: false }));
  addEventListener('keydown', host.cards.press);
});
afterEach(async () => {
  removeEventListener('keydown', host.cards.press);
  await Promise.all(mounted.map((component) => unmount(component)));
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function show(component: unknown, props: Record<string, unknown>): HTMLElement {
  const target = document.createElement('div');
  document.body.append(target);
  mounted.push(mount(Within, { target, props: { host, of: component as Component, props } }));
  flushSync();
  return target;
}

function press(key: string, more: KeyboardEventInit = {}): KeyboardEvent {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more });
  (document.activeElement ?? document.body).dispatchEvent(event);
  flushSync();
  return event;
}

const actions = (): Action[] => dispatched.map(({ action }) => action);
const turn = (id: string, text = 'Go', more: Partial<Turn> = {}): Turn => ({
  id,
  state: 'complete',
  message: message(text),
  responseParts: [],
  ...more,
});
const chatState = (more: Partial<ChatState>): ChatState => ({
  resource: CHAT,
  title: '',
  status: 1,
  modifiedAt: '2026-01-01T00:00:00Z',
  turns: [],
  ...more,
});
const attachment = (label: string, data = 'AAAA'): MessageAttachment => ({
  type: 'embeddedResource',
  label,
  contentType: 'text/plain',
  data,
});

describe('the keys of a permission request', () => {
  const options = [
    { id: 'always', label: 'Always', kind: 'approve', group: 1 },
    { id: 'once', label: 'Once', kind: 'approve' },
    { id: 'no', label: 'No', kind: 'deny' },
  ];
  const call = (id: string): ToolCallState =>
    ({
      toolCallId: id,
      toolName: 'sh',
      displayName: 'Bash',
      invocationMessage: 'make',
      status: 'pending-confirmation',
      toolInput: 'make',
      options,
    }) as ToolCallState;
  const card = (id = 'c'): HTMLElement => show(Permission, { call: call(id), turnId: 't', chat: CHAT });

  it('allow once, never for good, and deny', () => {
    card();
    vi.advanceTimersByTime(SETTLING_MS);
    press('y');
    press('n');
    expect(actions()).toMatchObject([
      { type: 'chat/toolCallConfirmed', approved: true, selectedOptionId: 'once' },
      { type: 'chat/toolCallConfirmed', approved: false, selectedOptionId: 'no' },
    ]);
  });

  it('wait until the card was announced, so that a typed letter answers nothing', () => {
    card();
    expect(host.notices.spoken).toBe('Permission request: Run this command? make');
    press('y');
    expect(actions()).toEqual([]);
    vi.advanceTimersByTime(SETTLING_MS);
    press('y');
    expect(actions()).toHaveLength(1);
  });

  it.each(['textarea', 'input', 'select'])('do nothing while a %s has the focus', (tag) => {
    card();
    vi.advanceTimersByTime(SETTLING_MS);
    const field = document.createElement(tag);
    document.body.append(field);
    field.focus();
    for (const key of ['y', 'a', 'n']) press(key);
    expect(actions()).toEqual([]);
    field.blur();
    press('y');
    expect(actions()).toHaveLength(1);
  });

  it('do nothing with a modifier, while repeating, in a list or below a dialog', () => {
    card();
    vi.advanceTimersByTime(SETTLING_MS);
    press('y', { ctrlKey: true });
    press('y', { metaKey: true });
    press('y', { altKey: true });
    press('y', { repeat: true });
    const list = document.createElement('nav');
    list.innerHTML = '<button>row</button>';
    document.body.append(list);
    list.querySelector('button')!.focus();
    press('y');
    list.remove();
    const dialog = document.createElement('dialog');
    dialog.setAttribute('open', '');
    document.body.append(dialog);
    press('y');
    expect(actions()).toEqual([]);
  });

  it('show a card that is out of view, and answer it only then', () => {
    const shown = card().querySelector<HTMLElement>('[role=group]')!;
    const scrolled = vi.fn();
    shown.scrollIntoView = scrolled;
    shown.getBoundingClientRect = () => ({ top: 5_000, bottom: 5_200 }) as DOMRect;
    vi.advanceTimersByTime(SETTLING_MS);
    press('n');
    expect(actions()).toEqual([]);
    expect(scrolled).toHaveBeenCalled();
    shown.getBoundingClientRect = () => ({ top: 100, bottom: 300 }) as DOMRect;
    press('n');
    expect(actions()).toHaveLength(1);
  });

  it('answer the oldest card first, and the next one only after its own announcement', async () => {
    const first = card('one');
    card('two');
    vi.advanceTimersByTime(SETTLING_MS);
    press('y');
    expect(actions()).toMatchObject([{ toolCallId: 'one' }]);
    await unmount(mounted.shift()!);
    first.remove();
    press('y');
    expect(actions()).toHaveLength(1);
    vi.advanceTimersByTime(SETTLING_MS);
    press('y');
    expect(actions()).toMatchObject([{ toolCallId: 'one' }, { toolCallId: 'two' }]);
  });

  it('deny with a reason, which the agent receives as a message and with the answer', async () => {
    const shown = card();
    vi.advanceTimersByTime(SETTLING_MS);
    press('N', { shiftKey: true });
    await vi.advanceTimersByTimeAsync(1);
    const field = shown.querySelector('textarea')!;
    expect(document.activeElement).toBe(field);
    press('Enter');
    expect(actions(), 'an empty reason is none').toEqual([]);
    field.value = 'Use make clean';
    field.dispatchEvent(new Event('input', { bubbles: true }));
    press('Enter');
    expect(actions()).toMatchObject([
      { type: 'chat/pendingMessageSet', kind: 'steering', message: { text: 'Use make clean' } },
      { type: 'chat/toolCallConfirmed', approved: false, reason: 'denied', reasonMessage: 'Use make clean' },
    ]);
  });
});

describe('the keys of a question', () => {
  const question = {
    kind: 'single-select',
    id: 'q',
    message: 'Which?',
    options: [
      { id: 'a', label: 'A' },
      { id: 'b', label: 'B' },
    ],
  } as ChatInputQuestion;

  it('choose an option by its number, and answer', () => {
    show(InputRequest, { request: { id: 'r', questions: [question] }, chat: CHAT });
    vi.advanceTimersByTime(SETTLING_MS);
    press('2');
    press('Enter');
    expect(actions()).toMatchObject([
      { type: 'chat/inputCompleted', response: 'accept', answers: { q: { value: { kind: 'selected', value: 'b' } } } },
    ]);
  });

  it('go on after a login on another page, whose address is followed only if that is safe', () => {
    const ask = (url: string): HTMLElement =>
      show(InputRequest, { request: { id: url, message: 'Log in', url }, chat: CHAT });
    const link = ask('https://example.org/login').querySelector('a')!;
    expect([link.href, link.target, link.rel]).toEqual(['https://example.org/login', '_blank', 'noopener noreferrer']);
    expect(ask('javascript:alert(1)').querySelector('a')).toBeNull();
    vi.advanceTimersByTime(SETTLING_MS);
    press('Enter');
    expect(actions()).toMatchObject([{ type: 'chat/inputCompleted', requestId: 'https://example.org/login' }]);
  });

  it('choose nothing that is not offered', () => {
    const empty = initial({ id: 'r', questions: [question] })['q']!;
    expect(choose(question, empty, '3')).toBeUndefined();
    expect(choose(question, empty, '0')).toBeUndefined();
    expect(choose(question, empty, 'b')).toBeUndefined();
    const several = { ...question, kind: 'multi-select' } as ChatInputQuestion;
    const once = choose(several, empty, '1')!;
    expect(choose(several, once, '2')?.chosen).toEqual(['a', 'b']);
    expect(choose(several, once, '1')?.chosen).toEqual([]);
    const decision = { kind: 'boolean', id: 'q', message: '' } as ChatInputQuestion;
    expect(choose(decision, empty, 'n')?.yes).toBe(false);
    expect(choose(decision, empty, '1')).toBeUndefined();
  });
});

describe('a message for the running turn', () => {
  it('is added to one that still waits, which it must not replace', () => {
    const waiting = { id: 's', message: message('First.', [attachment('a')]) };
    expect(steer(chatState({ steeringMessage: waiting }), message('Second.', [attachment('b')]))).toMatchObject({
      kind: 'steering',
      id: 's',
      message: { text: 'First.\n\nSecond.', attachments: [{ label: 'a' }, { label: 'b' }] },
    });
    expect(steer(chatState({}), message('Only.'))).toMatchObject({ message: { text: 'Only.' } });
  });
});

describe('the queue', () => {
  const queued = ['one', 'two', 'three'].map((id) => ({ id, message: message(`Prompt ${id}`) }));
  const active = { ...turn('t'), startedAt: '2026-01-01T00:00:00Z' };

  function list(state: ChatState): HTMLElement {
    return show(Queue, {
      chat: { uri: CHAT, state, dispatch: (action: Action) => dispatched.push({ channel: CHAT, action }) },
    });
  }
  const items = (shown: HTMLElement): HTMLElement[] => [...shown.querySelectorAll<HTMLElement>('li')];
  const button = (item: Element, name: string): HTMLButtonElement =>
    [...item.querySelectorAll('button')].find((b) => (b.getAttribute('aria-label') ?? b.textContent!.trim()) === name)!;

  it('is reordered by keys and by buttons', () => {
    const shown = list(chatState({ queuedMessages: queued }));
    items(shown)[0]!.focus();
    press('ArrowDown', { altKey: true });
    button(items(shown)[2]!, 'Move up').click();
    expect(actions()).toEqual([
      { type: 'chat/queuedMessagesReordered', order: ['two', 'one', 'three'] },
      { type: 'chat/queuedMessagesReordered', order: ['one', 'three', 'two'] },
    ]);
    expect(button(items(shown)[0]!, 'Move up').disabled).toBe(true);
    items(shown)[0]!.focus();
    press('ArrowUp', { altKey: true });
    expect(actions()).toHaveLength(2);
  });

  it('is edited in place, and keeps what else a message has', () => {
    const rich = { id: 'r', message: message('Old', [attachment('a')]) };
    const shown = list(chatState({ queuedMessages: [rich] }));
    button(items(shown)[0]!, 'Edit the queued prompt').click();
    flushSync();
    const field = shown.querySelector('textarea')!;
    field.value = 'New';
    field.dispatchEvent(new Event('input', { bubbles: true }));
    field.focus();
    press('Enter');
    expect(actions()).toEqual([
      { type: 'chat/pendingMessageSet', kind: 'queued', id: 'r', message: message('New', [attachment('a')]) },
    ]);
  });

  it('gives a message to the running turn: it is sent before it leaves the queue', () => {
    const shown = list(chatState({ queuedMessages: queued, activeTurn: active }));
    button(items(shown)[1]!, 'Send now').click();
    expect(actions()).toMatchObject([
      { type: 'chat/pendingMessageSet', kind: 'steering', message: { text: 'Prompt two' } },
      { type: 'chat/pendingMessageRemoved', kind: 'queued', id: 'two' },
    ]);
  });

  it('keeps every id when one of them is moved', () => {
    const ids = ['a', 'b', 'c', 'd'];
    for (const id of ids)
      for (let to = -1; to <= ids.length; to++) {
        const order = moved(ids, id, to);
        expect(order.toSorted()).toEqual(ids);
        expect(order.indexOf(id)).toBe(Math.min(Math.max(to, 0), ids.length - 1));
      }
    expect(moved(ids, 'x', 0)).toEqual(ids);
  });

  it('after a reconnect sends again what the host does not have', () => {
    const state = chatState({ queuedMessages: queued });
    const edit: Action = { type: 'chat/pendingMessageSet', kind: 'queued', id: 'one', message: message('Edited') };
    expect(isVisibleInChat(state, undefined, edit)).toBe(false);
    const order = (...ids: string[]): Action => ({ type: 'chat/queuedMessagesReordered', order: ids });
    expect(isVisibleInChat(state, undefined, order('two', 'one', 'three'))).toBe(false);
    expect(isVisibleInChat(state, undefined, order('one', 'two'))).toBe(true);
    expect(isVisibleInChat(state, undefined, order('gone', 'one')), 'an order of the past').toBe(true);
  });
});

describe('a turn that failed or was stopped', () => {
  const buttonOf = (of: Turn, canRetry = true): HTMLButtonElement | null => {
    const retry = canRetry ? (action: Action) => dispatched.push({ channel: CHAT, action }) : undefined;
    return show(TurnActions, { turn: of, retry }).querySelector('button:not(.icon)');
  };

  it('is tried again with the same message, attachments included', () => {
    const failed = turn('f', 'Go', { state: 'error', message: message('Go', [attachment('a')]) });
    buttonOf(failed)!.click();
    expect(actions()).toMatchObject([{ type: 'chat/turnStarted', message: failed.message }]);
    expect((actions()[0] as { turnId: string }).turnId).not.toBe('f');
  });

  it('is not, if it is complete, if nothing can be started, or if it is not of a person', () => {
    const stopped = turn('s', 'Go', { state: 'cancelled' });
    expect(buttonOf(turn('c'))).toBeNull();
    expect(buttonOf(stopped, false)).toBeNull();
    expect(buttonOf({ ...stopped, message: { text: 'Go', origin: { kind: 'agent' } } as Turn['message'] })).toBeNull();
  });
});

describe('the history of prompts', () => {
  it('has the newest first, each once, and only those of people', () => {
    const turns = [
      turn('1', 'a'),
      turn('2', 'b'),
      turn('3', 'a'),
      turn('4', 'x', { message: { text: 'x', origin: { kind: 'agent' } } as Turn['message'] }),
    ];
    expect(sentTexts(turns)).toEqual(['a', 'b']);
  });

  it('ends at its ends', () => {
    expect([step(-1, 1, 2), step(0, 1, 2), step(1, 1, 2), step(0, -1, 2), step(-1, -1, 2), step(-1, 1, 0)]).toEqual([
      0, 1, 1, -1, -1, -1,
    ]);
  });
});

describe('a reference to a file', () => {
  it('is typed after a space or at the beginning, and not in an address', () => {
    expect(typesReference('see @src/ma', 11)).toBe(true);
    expect(typesReference('@', 1)).toBe(true);
    expect(typesReference('me@example.org', 14)).toBe(false);
    expect(typesReference('see @src and', 12)).toBe(false);
  });

  it('is completed in its place, and a folder can be completed further', () => {
    const item = { insertText: '@src/main.rs', rangeStart: 4, rangeEnd: 8, attachment: attachment('main.rs') };
    expect(completeReference('see @src now', 8, item)).toEqual({
      text: 'see @src/main.rs now',
      caret: 17,
      isFolder: false,
    });
    expect(completeReference('see @src', 8, item)).toEqual({ text: 'see @src/main.rs ', caret: 17, isFolder: false });
    const folder = { ...item, insertText: '@src/' };
    expect(completeReference('see @s', 6, { ...folder, rangeEnd: 6 })).toEqual({
      text: 'see @src/',
      caret: 9,
      isFolder: true,
    });
  });

  it('is attached once, and only while the text has it', () => {
    const references = ['@a', '@b', '@a'].map((text) => ({ text, attachment: attachment(text) }));
    expect(referenced('look at @a\nand @a', references).map((one) => one.label)).toEqual(['@a']);
    expect(referenced('look at @abc', references)).toEqual([]);
  });
});

describe('attachments', () => {
  it('have a bound together, and long pastes become one', () => {
    expect(problemOf([attachment('a')])).toBe('');
    expect(
      problemOf([attachment('a', 'x'.repeat(MOST_EMBEDDED / 2)), attachment('b', 'x'.repeat(MOST_EMBEDDED / 2 + 1))]),
    ).toContain('b was not attached');
    expect(problemOf(Array.from({ length: 51 }, () => attachment('a')))).toContain('at most 50');
    expect(isLongPaste('x'.repeat(8_001))).toBe(true);
    expect(isLongPaste('\n'.repeat(101))).toBe(true);
    expect(isLongPaste('a\nfew\nlines')).toBe(false);
  });
});

describe('the branches of a chat', () => {
  const row = (id: string, parent: string | null, time: number, more: Partial<BranchRow> = {}): BranchRow => ({
    id,
    parent,
    depth: 0,
    role: 'user',
    time,
    active: false,
    hasChildren: false,
    turn: `turn-${id}`,
    ...more,
  });

  it('are found by the turns of the current one, in the order of their times', () => {
    const { entries, alternatives } = branchesOf([
      row('a', null, 1, { active: true }),
      row('c', 'a', 3, { active: true }),
      row('b', 'a', 2),
      row('d', 'a', 4),
    ]);
    expect([...entries]).toEqual([
      ['turn-a', 'a'],
      ['turn-c', 'c'],
    ]);
    expect([...alternatives]).toEqual([['turn-c', { entries: ['b', 'c', 'd'], at: 1 }]]);
  });

  it('without the current branch have nothing to show', () => {
    expect(branchesOf([row('a', null, 1), row('b', null, 2)]).alternatives.size).toBe(0);
    expect(rowsOf([null, 'x', {}, { id: 'a' }])).toHaveLength(1);
    expect(rowsOf('none')).toEqual([]);
  });

  it('end at the newest entry below a message, whichever of its branches that is on', () => {
    const deep = (id: string, depth: number, time: number, hasChildren: boolean): BranchRow =>
      row(id, null, time, { depth, hasChildren });
    const rows = [
      deep('a', 0, 1, true),
      deep('b', 1, 2, true),
      deep('b1', 2, 9, false),
      deep('b2', 2, 5, false),
      deep('c', 1, 20, false),
    ];
    expect(newestLeaf(rows, 'b')).toBe('b1');
    expect(newestLeaf(rows, 'a')).toBe('c');
    expect(newestLeaf(rows, 'c')).toBe('c');
    expect(newestLeaf(rows, 'x')).toBeUndefined();
  });
});

describe('the chats of a session', () => {
  const chat = (resource: string, parent?: string): ChatSummary => ({
    resource,
    title: '',
    status: 1,
    modifiedAt: '',
    ...(parent ? { origin: { kind: 'tool', chat: parent, toolCallId: 'c' } } : {}),
  });

  it('have those of subagents below them, at any depth', () => {
    const tabs = tabsOf([chat('main'), chat('sub', 'main'), chat('side'), chat('subsub', 'sub'), chat('lost', 'gone')]);
    expect(tabs.map((tab) => [tab.chat.resource, ...tab.subagents.map((each) => each.resource)])).toEqual([
      ['main', 'sub', 'subsub'],
      ['side'],
      ['lost'],
    ]);
    expect(tabOf(tabs, 'subsub')?.chat.resource).toBe('main');
  });
});

describe('a prompt', () => {
  const prompt = (): { prompt: Prompt; sent: Action[] } => {
    const sent: Action[] = [];
    return { prompt: new Prompt(CHAT, (_chat, action) => sent.push(action)), sent };
  };
  const write = (to: Prompt, text: string): void => {
    to.text = text;
    to.changed();
  };

  it('is given to the host after a pause, once', () => {
    const { prompt: mine, sent } = prompt();
    write(mine, 'make');
    write(mine, 'make it');
    expect(sent).toEqual([]);
    vi.advanceTimersByTime(PAUSE_MS);
    expect(sent).toEqual([{ type: 'chat/draftChanged', draft: message('make it') }]);
    vi.advanceTimersByTime(10 * PAUSE_MS);
    expect(sent).toHaveLength(1);
  });

  it('shows the draft of another device, and keeps what is being typed', () => {
    const { prompt: mine } = prompt();
    mine.hear(chatState({ draft: message('make it green') }));
    expect(mine.text).toBe('make it green');
    write(mine, 'please make it green');
    mine.hear(chatState({ draft: message('make it green and fast') }));
    expect(mine.text).toBe('please make it green and fast');
  });

  it('that is sent ends the draft of every device', () => {
    const { prompt: mine, sent } = prompt();
    write(mine, 'go');
    vi.advanceTimersByTime(PAUSE_MS);
    expect(mine.take()).toEqual(message('go'));
    mine.flush();
    expect(sent.at(-1)).toEqual({ type: 'chat/draftChanged' });
    expect(mine.isEmpty).toBe(true);
  });

  it('that was typed while the host was away is not taken for one that was deleted elsewhere', () => {
    const { prompt: mine, sent } = prompt();
    mine.hear(chatState({}));
    write(mine, 'typed while away');
    vi.advanceTimersByTime(PAUSE_MS);
    mine.hear(chatState({ draft: message('typed while away') }), false);
    vi.advanceTimersByTime(60_000);
    // The host is back, without the draft.
    mine.hear(chatState({}));
    expect(mine.text).toBe('typed while away');
    vi.advanceTimersByTime(PAUSE_MS);
    expect(sent).toHaveLength(2);
    mine.hear(chatState({ draft: message('typed while away') }));
    vi.advanceTimersByTime(60_000);
    mine.hear(chatState({}));
    expect(mine.text, 'now it was deleted').toBe('');
  });

  it('is given to the host also while an answer streams', () => {
    const { prompt: mine, sent } = prompt();
    write(mine, 'next');
    for (let frame = 0; frame < 100; frame++) {
      mine.hear(chatState({}));
      vi.advanceTimersByTime(16);
    }
    expect(sent).toHaveLength(1);
  });

  it('that another device has sent is not kept for what was just typed', () => {
    const { prompt: mine } = prompt();
    write(mine, 'go now');
    vi.advanceTimersByTime(PAUSE_MS);
    mine.hear(chatState({ draft: message('go now') }));
    mine.hear(chatState({ activeTurn: { ...turn('t', 'go now'), startedAt: '' } }));
    expect(mine.text).toBe('');
  });

  it('does not show an attachment again that was removed while the host had it on its way', () => {
    const { prompt: mine } = prompt();
    mine.attach([attachment('a'), attachment('b')]);
    vi.advanceTimersByTime(PAUSE_MS);
    mine.detach(mine.attachments[1]!);
    // The host's own order of members.
    const reordered = mine.attachments.map((one) => Object.fromEntries(Object.entries(one).toReversed()));
    const both = [...reordered, Object.fromEntries(Object.entries(attachment('b')).toReversed())];
    mine.hear(chatState({ draft: message('', both as unknown as MessageAttachment[]) }));
    expect(mine.attachments.map((one) => one.label)).toEqual(['a']);
  });

  it('survives a reload without a host', () => {
    write(prompt().prompt, 'typed while away');
    const { prompt: again } = prompt();
    expect(again.text).toBe('typed while away');
    again.hear(chatState({ draft: message('from elsewhere') }));
    expect(again.text).toContain('typed while away');
    expect(again.text).toContain('from elsewhere');
    forgetDrafts();
    expect(sessionStorage).toHaveLength(0);
  });

  it('waits while an earlier message is edited, and comes back', () => {
    const { prompt: mine, sent } = prompt();
    write(mine, 'half a thought');
    mine.edit(turn('t', 'earlier', { message: message('earlier', [attachment('a')]) }));
    const before = sent.length;
    expect([mine.text, mine.attachments.length]).toEqual(['earlier', 1]);
    write(mine, 'earlier, but better');
    vi.advanceTimersByTime(PAUSE_MS);
    expect(sent, 'an edited message is no draft').toHaveLength(before);
    expect(mine.take().text).toBe('earlier, but better');
    expect([mine.text, mine.attachments.length, mine.editing]).toEqual(['half a thought', 0, undefined]);
  });

  it('with a large attachment keeps that on this device', () => {
    const { prompt: mine, sent } = prompt();
    mine.attach([attachment('small'), attachment('large', 'x'.repeat(100_000))]);
    vi.advanceTimersByTime(PAUSE_MS);
    expect(sent).toMatchObject([{ draft: { attachments: [{ label: 'small' }] } }]);
    mine.hear(chatState({ draft: message('', [attachment('theirs')]) }));
    expect(mine.attachments.map((one) => one.label)).toEqual(['large', 'theirs']);
  });

  it('of many chats fills neither the memory nor the storage of the tab', () => {
    const prompts = new Prompts(() => undefined);
    for (let n = 0; n < 200; n++) write(prompts.of(`ahp-chat:/${n}`), `text ${n}`);
    expect(sessionStorage.length).toBe(50);
    write(prompts.of('ahp-chat:/199'), 'x'.repeat(200_000));
    expect(JSON.stringify({ ...sessionStorage }).length).toBeLessThan(10_000);
    const empty = prompts.of('ahp-chat:/empty');
    prompts.release('ahp-chat:/empty');
    expect(prompts.of('ahp-chat:/empty')).not.toBe(empty);
  });
});
