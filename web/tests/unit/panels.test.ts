// @vitest-environment jsdom
import { type Component, flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { commentsOf, forgetComments } from '../../src/store/comments.svelte';
import { Host } from '../../src/store/host.svelte';
import { TreeStore } from '../../src/store/tree.svelte';
import ChangesPanel from '../../src/ui/changes/ChangesPanel.svelte';
import TreePanel from '../../src/ui/tree/TreePanel.svelte';
import type { ChatState, Turn } from '../../src/wire/types';
import Within from './Within.svelte';

const CHAT = 'ahp-chat:/1';

let host: Host;
let state: ChatState;
let changed: () => void;
let requests: { method: string; params: Record<string, unknown> }[];
let answer: (method: string, params: Record<string, unknown>) => unknown;
let mounted: Record<string, unknown>[];

beforeEach(() => {
  document.body.replaceChildren();
  sessionStorage.clear();
  mounted = [];
  requests = [];
  answer = () => ({});
  state = { resource: CHAT, title: '', status: 1, modifiedAt: '', turns: [] } as unknown as ChatState;
  host = new Host({ openSocket: () => Promise.reject(new Error('never connected')) });
  vi.spyOn(host.client, 'open').mockImplementation(((kind: string, uri: string, listener: () => void) => {
    if (kind === 'chat') changed = listener;
    return {
      uri,
      kind,
      get state() {
        return kind === 'chat' ? state : undefined;
      },
      pending: [],
      problem: undefined,
      close: () => {},
    };
  }) as never);
  vi.spyOn(host.client, 'requestOwn').mockImplementation(async (method, params) => {
    requests.push({ method, params });
    return answer(method, params);
  });
  vi.stubGlobal('matchMedia', () => ({ matches: false }));
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe(): void {}
      disconnect(): void {}
    },
  );
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
    this.dispatchEvent(new Event('close'));
  };
  Element.prototype.scrollIntoView = () => {};
});
afterEach(async () => {
  await Promise.all(mounted.map((component) => unmount(component)));
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function show(component: unknown, more: Record<string, unknown> = {}): HTMLElement {
  const target = document.createElement('div');
  document.body.append(target);
  const props = { chat: CHAT, router: {}, close: () => {}, turn: undefined, select: () => {}, ...more };
  mounted.push(mount(Within, { target, props: { host, of: component as Component, props } }));
  flushSync();
  return target;
}

async function until<T>(found: () => T | undefined | false | null): Promise<T> {
  return vi.waitFor(() => {
    flushSync();
    const value = found();
    if (!value) throw new Error(`not yet: ${document.body.innerHTML.slice(0, 2_000)}`);
    return value;
  });
}

const words = (element: Element | null): string => element?.textContent?.replace(/\s+/g, ' ').trim() ?? '';
const button = (within: Element, name: string): HTMLButtonElement | undefined =>
  [...within.querySelectorAll('button')].find((one) => words(one) === name || one.ariaLabel === name);
const press = (target: Element, key: string): void => {
  target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  flushSync();
};

describe('the tree', () => {
  const entry = (n: number, more: object = {}) => ({
    id: `e${n}`,
    parent: n === 0 ? null : `e${n - 1}`,
    depth: n,
    indent: 0,
    kind: 'message',
    role: n % 2 === 0 ? 'user' : 'assistant',
    text: `text ${n}`,
    active: true,
    leaf: false,
    ...more,
  });

  /** A host with so many entries in one line, in pages. */
  function serve(total: number): void {
    answer = (method, params) => {
      if (method !== 'x-grove/tree') return {};
      const from = Number(params['cursor'] ?? 0);
      const to = Math.min(total, from + Number(params['limit']));
      const rows = Array.from({ length: to - from }, (_, n) => entry(from + n, { leaf: from + n === total - 1 }));
      return { rows, total, ...(to < total ? { nextCursor: String(to) } : {}) };
    };
  }

  it('of 10,000 entries is loaded in pages and draws only the rows in view', async () => {
    serve(10_000);
    const shown = show(TreePanel);
    await until(() => words(shown.querySelector('.total')) === '10000 entries');
    // The current position is the last row.
    await until(() => shown.querySelector('[aria-activedescendant=tree-row-9999]'));
    expect(requests).toHaveLength(10);
    expect(shown.querySelectorAll('[role=treeitem]').length).toBeLessThan(60);
    expect(button(shown, 'Load more')).toBeUndefined();
  });

  it('with more entries loads the others on request, up to a bound', async () => {
    serve(60_000);
    const shown = show(TreePanel);
    (await until(() => button(shown, 'Load 40000 more'))).click();
    await until(() => button(shown, 'Load 30000 more'));
    // The first 10 pages, and then 20 from the beginning.
    expect(requests).toHaveLength(30);
  });

  it('that changes while it is loaded shows the later answer', async () => {
    const waiting: (() => void)[] = [];
    answer = (_method, params) =>
      new Promise((resolve) =>
        waiting.push(() => resolve({ rows: [entry(0, { text: String(params['filter']) })], total: 1 })),
      );
    const shown = show(TreePanel);
    await until(() => waiting.length === 1);
    const filter = shown.querySelector('select')!;
    filter.value = 'all';
    filter.dispatchEvent(new Event('change', { bubbles: true }));
    await until(() => waiting.length === 2);
    waiting[1]!();
    await until(() => words(shown.querySelector('.text')) === 'all');
    waiting[0]!();
    await new Promise((resolve) => setTimeout(resolve, 20));
    flushSync();
    expect(words(shown.querySelector('.text'))).toBe('all');
  });

  it('that cannot be read says why, and tries again', async () => {
    answer = () => Promise.reject(new Error('the log is gone'));
    const shown = show(TreePanel);
    const again = await until(() => button(shown, 'Try again'));
    expect(words(shown.querySelector('.note'))).toContain('the log is gone');
    serve(3);
    again.click();
    await until(() => shown.querySelectorAll('[role=treeitem]').length === 3);
  });

  it('asks before it goes somewhere else, and puts the text of a message into the prompt', async () => {
    serve(5);
    const shown = show(TreePanel);
    const list = await until(() => shown.querySelector('[role=treeitem]') && shown.querySelector('[role=tree]'));
    const prompt = host.prompts.of(CHAT);
    press(list, 'Home');
    press(list, 'Enter');
    const dialog = await until(() => shown.querySelector('dialog[open]'));
    serve(5);
    const rows = answer;
    answer = (method, params) =>
      method === 'x-grove/navigate' ? { moved: true, leaf: null, text: 'Hello' } : rows(method, params);
    dialog.querySelector('form')!.requestSubmit();
    await until(() => prompt.text !== '');
    expect(prompt.text).toBe('Hello');
    const navigate = requests.find(({ method }) => method === 'x-grove/navigate');
    expect(navigate?.params).toEqual({ channel: CHAT, entry: 'e0' });
  });

  it('compares no branches of a log that is too long', async () => {
    const read: unknown[] = [];
    answer = (method, params) =>
      method === 'x-grove/entries'
        ? (read.push(params['cursor']), { entries: [], cursor: `${read.length}`, more: true })
        : {};
    expect(await new TreeStore(host, CHAT).compare('a', 'b')).toBeUndefined();
    expect(read).toHaveLength(16);
  });

  it('can cancel a summary that another client asked for', async () => {
    serve(3);
    state = { ...state, activity: 'Summarizing a branch' };
    const shown = show(TreePanel);
    const cancel = await until(() => button(shown, 'Cancel'));
    expect(words(shown.querySelector('[role=status]'))).toContain('Summarizing a branch');
    cancel.click();
    await until(() => requests.some(({ method }) => method === 'x-grove/abort'));
  });
});

describe('the changes', () => {
  const turn = (n: number): Turn =>
    ({
      id: `t${n}`,
      state: 'complete',
      message: { text: `Prompt ${n}`, origin: { kind: 'user' } },
      responseParts: [
        {
          kind: 'toolCall',
          toolCall: {
            toolCallId: `c${n}`,
            toolName: 'edit',
            displayName: 'Edit',
            invocationMessage: '',
            confirmed: 'not-needed',
            status: 'completed',
            success: true,
            pastTenseMessage: '',
            content: [
              {
                type: 'fileEdit',
                after: { uri: `file:///w/${n}.txt`, content: { uri: `grove-content://s/${n}`, sizeHint: 2 } },
                diff: { added: 1 },
              },
            ],
          },
        },
      ],
    }) as Turn;

  beforeEach(() => {
    host.read = async (uri) => ({ data: `${uri}\n`, encoding: 'utf-8' });
  });

  it('say from which turns they are, and load older ones with progress until there are no more', async () => {
    state = { ...state, turns: [turn(4), turn(5)], turnsNextCursor: 'older' };
    const shown = show(ChangesPanel);
    await until(() => words(shown.querySelector('.range')) === 'From the newest 2 turns. Load older turns');
    const progress: string[] = [];
    host.loadEarlierTurns = async (_chat, cursor) => {
      flushSync();
      progress.push(`${cursor} ${words(shown.querySelector('.range'))}`);
      state =
        cursor === 'older'
          ? { ...state, turns: [turn(2), turn(3), ...state.turns], turnsNextCursor: 'oldest' }
          : { ...state, turns: [turn(1), ...state.turns], turnsNextCursor: undefined };
      changed();
    };
    button(shown, 'Load older turns')!.click();
    await until(() => !shown.querySelector('.range') && shown.querySelectorAll('section').length === 5);
    expect(progress).toEqual([
      'older Loading older turns … 2 so far Stop',
      'oldest Loading older turns … 4 so far Stop',
    ]);
    expect([...shown.querySelectorAll('section')].map((file) => file.ariaLabel)).toEqual(
      [1, 2, 3, 4, 5].map((n) => `/w/${n}.txt`),
    );
  });

  it('of a turn alone leave the others out', async () => {
    state = { ...state, turns: [turn(1), turn(2)] };
    const shown = show(ChangesPanel, { turn: 't2' });
    await until(() => shown.querySelectorAll('section').length === 1);
    expect([...shown.querySelectorAll('option')].map(words)).toEqual([
      'Whole session',
      'Turn 1: Prompt 1',
      'Turn 2: Prompt 2',
    ]);
    expect(shown.querySelector('select')!.value).toBe('t2');
  });

  it('open the first files, and each other one on request', async () => {
    state = { ...state, turns: Array.from({ length: 130 }, (_, n) => turn(n)) };
    const shown = show(ChangesPanel);
    await until(() => shown.querySelectorAll('.diff').length === 8);
    expect(shown.querySelectorAll('section')).toHaveLength(100);
    button(shown, 'Show 30 more files')!.click();
    await until(() => shown.querySelectorAll('section').length === 130);
    shown.querySelectorAll<HTMLButtonElement>('h3 button')[20]!.click();
    await until(() => shown.querySelectorAll('.diff').length === 9);
    button(shown, 'Close all')!.click();
    await until(() => shown.querySelectorAll('.diff').length === 0);
  });

  it('show a comment only in the part of a file that has its line', async () => {
    const file = (name: string) => ({ uri: 'file:///w/1.txt', content: { uri: `grove-content://s/${name}` } });
    const texts: Record<string, string> = { a: 'one\n', b: 'two\n', c: 'three\n', d: 'four\n' };
    host.read = async (uri) => ({ data: texts[uri.at(-1)!]!, encoding: 'utf-8' });
    const [first, second] = [turn(1), turn(2)];
    const edit = (of: Turn, before: string, after: string): void => {
      const part = of.responseParts[0]!;
      if (part.kind === 'toolCall')
        Object.assign(part.toolCall, { content: [{ type: 'fileEdit', before: file(before), after: file(after) }] });
    };
    edit(first, 'a', 'b');
    edit(second, 'c', 'd');
    const chat = 'ahp-chat:/parts';
    commentsOf(chat).add({ uri: 'file:///w/1.txt', side: 'after', first: 1, last: 1, quote: ['four'], text: 'Hm' });
    state = { ...state, turns: [first, second] };
    const shown = show(ChangesPanel, { chat });
    await until(() => shown.querySelectorAll('.diff').length === 2 && shown.querySelector('article'));
    const parts = [...shown.querySelectorAll('.diff')].map((diff) => diff.querySelectorAll('article').length);
    expect(parts).toEqual([0, 1]);
    expect(words(shown.querySelector('.note'))).toContain('Change 1 of 2');
  });

  it('keep no comments once the key of the tab is forgotten', () => {
    sessionStorage.setItem('other', 'x');
    commentsOf(CHAT).add({ uri: 'file:///w/1.txt', side: 'after', first: 1, last: 1, quote: ['a'], text: 'Hm' });
    expect(Object.keys(sessionStorage)).toHaveLength(2);
    forgetComments();
    expect(Object.keys(sessionStorage)).toEqual(['other']);
    expect(commentsOf(CHAT).items).toEqual([]);
  });

  it('keep comments that another version stored only as far as they have their shape', async () => {
    const good = { id: 'x', uri: 'file:///w/1.txt', side: 'after', first: 1, last: 1, quote: ['a', 7], text: 'Hm' };
    const chat = 'ahp-chat:/stored';
    sessionStorage.setItem(`grove-comments:${chat}`, JSON.stringify([good, { id: 7 }, null, 'x']));
    state = { ...state, turns: [turn(1)] };
    const shown = show(ChangesPanel, { chat });
    await until(() => words(shown.querySelector('footer .grow')) === '1 comment');
    await until(() => words(shown.querySelector('article .text')) === 'Hm');
  });
});
