// @vitest-environment jsdom
import { type Component, flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Client } from '../../src/protocol/client';
import { ChannelStore } from '../../src/store/channel.svelte';
import { Host } from '../../src/store/host.svelte';
import FileEdit from '../../src/ui/changes/FileEdit.svelte';
import Permission from '../../src/ui/cards/Permission.svelte';
import PromptBox from '../../src/ui/prompt/PromptBox.svelte';
import Resource from '../../src/ui/conversation/Resource.svelte';
import Settings from '../../src/ui/prompt/Settings.svelte';
import ToolCall from '../../src/ui/conversation/ToolCall.svelte';
import TurnView from '../../src/ui/conversation/TurnView.svelte';
import Warnings from '../../src/ui/session/Warnings.svelte';
import type { Action, ChatState, ResourceReadResult, SessionState, ToolCallState, Turn } from '../../src/wire/types';
import Within from './Within.svelte';

let host: Host;
let contents: Record<string, ResourceReadResult>;
let dispatched: Action[];
let mounted: Record<string, unknown>[];

beforeEach(() => {
  document.body.replaceChildren();
  contents = {};
  dispatched = [];
  mounted = [];
  host = new Host({
    openSocket: () => Promise.reject(new Error('never connected')),
  });
  host.read = async (uri) => contents[uri] ?? Promise.reject(new Error(`there is no ${uri}`));
  vi.spyOn(host.client as Client, 'dispatch').mockImplementation((_channel, action) => dispatched.push(action));
  vi.stubGlobal('matchMedia', () => ({ matches: false }));
  vi.stubGlobal(
    'IntersectionObserver',
    class {
      constructor(readonly seen: (entries: { isIntersecting: boolean }[]) => void) {}
      observe(): void {
        queueMicrotask(() => this.seen([{ isIntersecting: true }]));
      }
      disconnect(): void {}
    },
  );
});
afterEach(async () => {
  await Promise.all(mounted.map((component) => unmount(component)));
  vi.unstubAllGlobals();
});

// The type checker does not see the props of components.
function show(component: unknown, props: Record<string, unknown>): HTMLElement {
  const target = document.createElement('div');
  document.body.append(target);
  mounted.push(mount(Within, { target, props: { host, of: component as Component, props } }));
  flushSync();
  return target;
}

async function settled(): Promise<void> {
  for (let n = 0; n < 5; n++) await new Promise((resolve) => setTimeout(resolve, 0));
  flushSync();
}

const words = (element: Element | null): string => element?.textContent?.replace(/\s+/g, ' ').trim() ?? '';
const find = <E extends Element = HTMLElement>(within: Element, selector: string): E => {
  const found = within.querySelector<E>(selector);
  if (!found) throw new Error(`no ${selector} in ${within.innerHTML}`);
  return found;
};
async function toggle(details: HTMLElement): Promise<void> {
  (details as HTMLDetailsElement).open = true;
  details.dispatchEvent(new Event('toggle'));
  await settled();
}

const turn = (more: Partial<Turn>): Turn => ({
  id: 't',
  state: 'complete',
  message: { text: 'Go', origin: { kind: 'user' } },
  responseParts: [],
  ...more,
});
const showTurn = (given: unknown, more = {}): HTMLElement =>
  show(TurnView, { turn: given, chat: 'ahp-chat:/1', unsent: false, ...more });
const call = (more: object): ToolCallState =>
  ({
    toolCallId: 'c',
    toolName: 'sh',
    displayName: 'Bash',
    invocationMessage: 'make',
    confirmed: 'not-needed',
    status: 'running',
    ...more,
  }) as ToolCallState;
const showCall = (more: object): HTMLElement => show(ToolCall, { call: call(more), turnId: 't', chat: 'ahp-chat:/1' });

const plan = (...status: string[]) => ({
  kind: 'systemNotification' as const,
  content: 'plan',
  _meta: { plan: status.map((status, n) => ({ content: `step ${n}`, priority: 'medium', status })) },
});

describe('a plan', () => {
  it('is a checklist, and only the newest of a turn is open', () => {
    const shown = showTurn(turn({ responseParts: [plan('pending', 'pending'), plan('completed', 'inProgress')] }));
    const open = shown.querySelectorAll('section[aria-label="Plan"]');
    expect(open).toHaveLength(1);
    expect([...open[0]!.querySelectorAll('li')].map(words)).toEqual(['Done: step 0', 'In progress: step 1']);
    const before = shown.querySelectorAll('details');
    expect(before).toHaveLength(1);
    expect(before[0]!.open).toBe(false);
    expect(words(find(before[0]!, 'summary'))).toContain('Plan changed');
  });

  it('says what is more important only where something is less', () => {
    const entries = [
      { content: 'a', priority: 'high', status: 'pending' },
      { content: 'b', priority: 'medium', status: 'pending' },
    ];
    const part = { kind: 'systemNotification' as const, content: '', _meta: { plan: entries } };
    expect(words(find(showTurn(turn({ responseParts: [part] })), 'li'))).toBe('To do: a high');
    const even = { ...part, _meta: { plan: entries.map((entry) => ({ ...entry, priority: 'high' })) } };
    expect(words(find(showTurn(turn({ responseParts: [even] })), 'li'))).toBe('To do: a');
  });
});

describe('a turn', () => {
  it('shows a notice as a line', () => {
    const shown = showTurn(turn({ responseParts: [{ kind: 'systemNotification', content: 'It was tried again.' }] }));
    expect(words(find(shown, '.system'))).toBe('It was tried again.');
  });

  it('says at its end what it took', () => {
    const _meta = { context: { used: 12_345, size: 128_000 }, cost: { amount: 0.42, currency: 'USD' } };
    const shown = showTurn(turn({ usage: { inputTokens: 12_345, outputTokens: 67, _meta } }));
    expect(words(find(shown, '.state'))).toBe('12.3k → 67 tokens 12.3k of 128k · 0.42 USD');
    const cost = showTurn(turn({ usage: { _meta: { cost: { amount: 1, currency: 'USD' } } } }));
    expect(words(find(cost, '.state'))).toBe('1.00 USD');
  });

  it('that runs says what keeps it busy', () => {
    const { state: _none, ...active } = turn({});
    expect(words(find(showTurn(active), '.state'))).toBe('Working …');
    expect(words(find(showTurn(active, { activity: 'no answer for 20 s' }), '.state'))).toBe('no answer for 20 s');
  });
});

describe('a tool call', () => {
  it('says what kind it is, and which files it is about', () => {
    const acp = { locations: ['/w/a.rs', '/w/b.rs', '/w/c.rs', '/w/d.rs'].map((path) => ({ path })) };
    const shown = showCall({ _meta: { toolKind: 'terminal', acp } });
    expect(words(find(shown, 'summary'))).toBe('Command: Bash make a.rs, b.rs, c.rs and 1 more Running');
  });

  it('says who allowed or denied it, where the host does', () => {
    const _meta = { answeredBy: { token: 'phone', client: 'Page' } };
    const done = showCall({ status: 'completed', success: true, pastTenseMessage: 'made', _meta });
    expect(words(find(done, '.status'))).toContain('Done approved by phone (Page)');
    const denied = showCall({ status: 'cancelled', reason: 'denied', _meta: { answeredBy: { rule: 'no rm' } } });
    expect(words(find(denied, '.status'))).toBe('Denied by rule no rm');
    const skipped = showCall({ status: 'cancelled', reason: 'skipped', _meta });
    expect(words(find(skipped, '.status'))).toBe('Skipped');
  });

  it('that runs shows the end of what it puts out, without being opened', () => {
    const text = Array.from({ length: 50 }, (_, n) => `line ${n}`).join('\n');
    const shown = showCall({ content: [{ type: 'text', text }] });
    const output = find(shown, '[aria-label="Output so far"]').textContent!;
    expect(output).toContain('line 49');
    expect(output).not.toContain('line 0\n');
  });

  it('shows which files it changed, and how much', () => {
    const after = { uri: 'file:///w/src/a.rs', content: { uri: 'grove-content://s/1' } };
    const edit = { type: 'fileEdit', before: after, after, diff: { added: 3, removed: 1 } };
    const shown = showCall({ status: 'completed', success: true, pastTenseMessage: 'Edited', content: [edit] });
    expect(words(find(shown, 'summary'))).toContain('+3 lines added, −1 lines removed Done');
    expect(shown.querySelector('.edits')).toBeNull();
  });

  it('of hundreds of files shows the first, and the rest on demand', async () => {
    const edits = Array.from({ length: 300 }, (_, n) => ({
      type: 'fileEdit',
      after: { uri: `file:///${n}`, content: { uri: `grove-content://s/${n}` } },
    }));
    const shown = showCall({ status: 'completed', success: true, pastTenseMessage: 'Edited', content: edits });
    find<HTMLDetailsElement>(shown, 'details').open = true;
    await toggle(find(shown, 'details'));
    expect(shown.querySelectorAll('.edits details')).toHaveLength(10);
    find(shown, '.edits > button').click();
    flushSync();
    expect(shown.querySelectorAll('.edits details')).toHaveLength(300);
  });
});

describe('a changed file', () => {
  const edit = {
    before: { uri: 'file:///a', content: { uri: 'c:/old' } },
    after: { uri: 'file:///a', content: { uri: 'c:/new' } },
  };

  it('is compared when it is opened', async () => {
    contents = { 'c:/old': { data: 'a\nb\n', encoding: 'utf-8' }, 'c:/new': { data: 'a\nc\n', encoding: 'utf-8' } };
    const shown = show(FileEdit, { edit });
    expect(shown.querySelector('.line')).toBeNull();
    await toggle(find(shown, 'details'));
    expect([...shown.querySelectorAll('.line')].map(words)).toEqual(['a', '− removed: b', '+ added: c']);
  });

  it('that could not be fetched can be tried again', async () => {
    const shown = show(FileEdit, { edit });
    await toggle(find(shown, 'details'));
    expect(words(find(shown, '.note'))).toContain('there is no c:/');
    contents = { 'c:/old': { data: '', encoding: 'utf-8' }, 'c:/new': { data: 'x', encoding: 'utf-8' } };
    find(shown, '.note button').click();
    await settled();
    expect(shown.querySelectorAll('.line.added')).toHaveLength(1);
  });
});

describe('a resource', () => {
  it('that is a picture is shown as one', async () => {
    contents = { 'c:/p': { data: 'AAAA', encoding: 'base64', contentType: 'image/png' } };
    const shown = show(Resource, { content: { uri: 'c:/p', contentType: 'image/png' } });
    await settled();
    expect(find<HTMLImageElement>(shown, 'img').src).toBe('data:image/png;base64,AAAA');
  });

  it('that is elsewhere is a link, and only with an address that is safe to follow', () => {
    const link = find<HTMLAnchorElement>(show(Resource, { content: { uri: 'https://example.org/' } }), 'a');
    expect([link.href, link.rel]).toEqual(['https://example.org/', 'noopener noreferrer']);
    expect(show(Resource, { content: { uri: 'javascript:alert(1)' } }).querySelector('a')).toBeNull();
  });

  it('that is text is shown when asked for', async () => {
    contents = { 'c:/t': { data: 'hello', encoding: 'utf-8' } };
    const shown = show(Resource, { content: { uri: 'c:/t', contentType: 'text/plain' } });
    expect(shown.querySelector('pre')).toBeNull();
    find(shown, 'button[aria-expanded]').click();
    flushSync();
    await settled();
    expect(words(find(shown, 'pre'))).toBe('hello');
  });
});

describe('the row of a call', () => {
  const row = (more: object): string => words(find(showCall(more), 'summary'));

  it('says what was run, and never that a denied call runs', () => {
    const shell = { toolInput: '{"command":["bash","-lc","make test"]}', invocationMessage: 'Running Bash' };
    expect(row(shell)).toBe('Bash make test Running');
    expect(row({ ...shell, status: 'cancelled', reason: 'denied' })).toBe('Bash make test Denied');
    const plainText = { displayName: 'make', invocationMessage: 'Running make' };
    expect(row({ ...plainText, status: 'cancelled', reason: 'denied' })).toBe('make Denied');
  });

  it('names the file that was read or edited', () => {
    const read = { displayName: 'Read', toolInput: '{"file_path":"/w/src/a.ts"}', invocationMessage: 'Running Read' };
    expect(row({ ...read, _meta: { toolKind: 'read' } })).toBe('Read: Read a.ts Running');
  });

  it('says how long it ran, as the host measured it', () => {
    const result = { success: true, pastTenseMessage: 'Ran it' };
    expect(row({ status: 'completed', ...result, _meta: { ranMs: 2_500 } })).toContain('2.5 s Done');
    for (const _meta of [undefined, {}, { ranMs: 'long' }, { ranMs: -1 }]) {
      expect(row({ status: 'completed', ...result, ...(_meta && { _meta }) })).not.toContain(' s ');
    }
  });
});

describe('a permission', () => {
  const options = [
    { id: 'once', label: 'Allow', kind: 'approve' },
    { id: 'always', label: 'Always allow', kind: 'approve' },
    { id: 'no', label: 'Reject', kind: 'deny' },
    { id: 'never', label: 'Always reject', kind: 'deny' },
  ];

  it('has a button for each of its options, and sends the one that was chosen', () => {
    const asked = call({ status: 'pending-confirmation', options });
    const shown = show(Permission, { call: asked, turnId: 't', chat: 'ahp-chat:/1' });
    const buttons = [...shown.querySelectorAll<HTMLElement>('.buttons button')];
    expect(buttons.map(words)).toEqual(['Allow Y', 'Always allow', 'Reject N', 'Always reject']);
    expect(buttons.map((button) => button.classList.contains('danger'))).toEqual([false, false, true, true]);
    buttons[1]!.click();
    buttons[3]!.click();
    expect(dispatched).toMatchObject([
      { type: 'chat/toolCallConfirmed', approved: true, selectedOptionId: 'always' },
      { type: 'chat/toolCallConfirmed', approved: false, selectedOptionId: 'never', reason: 'denied' },
    ]);
  });

  const ask = (more: object): HTMLElement =>
    show(Permission, { call: call({ status: 'pending-confirmation', ...more }), turnId: 't', chat: 'ahp-chat:/1' });

  it('asks a question, shows the command once and then the options, and the rest on demand', () => {
    const shown = ask({
      confirmationTitle: '`rm -r build`',
      invocationMessage: 'rm -r build',
      toolInput: JSON.stringify({ command: 'rm -r build', description: 'Removes what was built' }),
      _meta: { toolKind: 'terminal' },
      options,
    });
    expect(words(find(shown, '.head'))).toBe('Run this command?');
    expect(words(find(shown, '.permission > pre'))).toBe('rm -r build');
    const [pre, buttons, details] = ['.permission > pre', '.buttons', 'details'].map((name) => find(shown, name));
    expect(pre!.compareDocumentPosition(buttons!) & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
    expect(buttons!.compareDocumentPosition(details!) & Node.DOCUMENT_POSITION_FOLLOWING).toBeTruthy();
    expect((details as HTMLDetailsElement).open).toBe(false);
    expect(words(details!)).toContain('Removes what was built');
    expect(shown.querySelectorAll('.said')).toHaveLength(0);
  });

  it('of an edit shows the coloured diff, whether the agent sent one or only the texts, and no escaped JSON', () => {
    const toolInput = JSON.stringify({
      file_path: '/w/a.ts',
      old_string: 'let a;\nlet b;',
      new_string: 'let a;\nlet c;',
    });
    const shown = ask({ confirmationTitle: 'Edit /w/a.ts', toolInput, _meta: { toolKind: 'edit' } });
    expect(words(find(shown, '.head'))).toBe('Edit a.ts?');
    expect([...shown.querySelectorAll('.line')].map((line) => line.className.replace(/svelte-\w+/, '').trim())).toEqual(
      ['line same', 'line removed', 'line added'],
    );
    expect(shown.textContent).not.toContain('\\n');
  });

  it('of anything else shows its input member by member', () => {
    const shown = ask({ displayName: 'jira', toolInput: JSON.stringify({ issue: 'G-1', fields: { done: true } }) });
    expect(words(find(shown, '.head'))).toBe('Allow jira?');
    expect([...shown.querySelectorAll('dt')].map(words)).toEqual(['issue', 'fields']);
    expect(words(find(shown, 'dd'))).toBe('G-1');
  });

  it('offers rules on demand, shows them as they are stored, and stores the chosen one', async () => {
    const asked: [string, Record<string, unknown>][] = [];
    const offers = {
      rules: [
        { text: 'allow shell "make x"', toml: '[[rules]]\nallow = "shell"\ncommand = "make x"\n' },
        { text: 'allow shell "make *"', toml: '[[rules]]\nallow = "shell"\ncommand = "make *"\n' },
      ],
      targets: [{ target: 'session' }, { target: 'everywhere', file: '/home/me/grove.toml' }],
    };
    vi.spyOn(host.client as Client, 'requestOwn').mockImplementation(async (method, params) => {
      asked.push([method, params]);
      return method === 'x-grove/policy/offers' ? offers : {};
    });
    const shown = ask({ toolCallId: 'c1', options });
    expect(asked).toEqual([]);
    find(shown, '[aria-keyshortcuts=a]').click();
    flushSync();
    await settled();
    expect(words(find(shown, '.always pre'))).toContain('command = "make x"');
    const radios = [...shown.querySelectorAll<HTMLInputElement>('fieldset input')];
    expect(radios).toHaveLength(4);
    radios[1]!.click();
    radios[3]!.click();
    flushSync();
    expect(words(find(shown, '.always pre'))).toContain('command = "make *"');
    expect(words(find(shown, '.always pre + .note'))).toBe('/home/me/grove.toml');
    find<HTMLFormElement>(shown, '.always').requestSubmit();
    await settled();
    expect(asked.at(-1)).toEqual([
      'x-grove/policy/allow',
      { channel: 'ahp-chat:/1', request: 'c1', target: 'everywhere', rule: offers.rules[1]!.toml },
    ]);
    expect(dispatched).toEqual([]);
  });

  it('whose options have the same id is still shown', () => {
    const twice = [options[0], options[0]];
    const asked = call({ status: 'pending-confirmation', options: twice });
    const shown = show(Permission, { call: asked, turnId: 't', chat: 'ahp-chat:/1' });
    expect(shown.querySelectorAll('.buttons button')).toHaveLength(2);
  });
});

/** An open session whose host is the test. */
const sessionStore = (state: Partial<SessionState>): ChannelStore<'session'> =>
  ({
    uri: 'ahp-session:/1',
    state,
    pending: [],
    dispatch: (action: Action) => dispatched.push(action),
  }) as unknown as ChannelStore<'session'>;

describe('settings', () => {
  const properties = {
    mode: { title: 'Mode', type: 'string', enum: ['ask', 'edit'], enumLabels: ['Ask first', 'Edit'] },
    think: { title: 'Think', type: 'boolean' },
  };
  const session = (): ChannelStore<'session'> =>
    sessionStore({ config: { schema: { type: 'object', properties }, values: { mode: 'edit', think: true } } });

  it('are changed one at a time', () => {
    const shown = show(Settings, { session: session() });
    const select = find<HTMLSelectElement>(shown, 'select');
    const box = find<HTMLInputElement>(shown, 'input');
    expect([select.selectedIndex, box.checked]).toEqual([1, true]);
    select.selectedIndex = 0;
    select.dispatchEvent(new Event('change', { bubbles: true }));
    box.click();
    expect(dispatched).toEqual([
      { type: 'session/configChanged', config: { mode: 'ask' } },
      { type: 'session/configChanged', config: { think: false } },
    ]);
  });

  it('that the host refuses are shown as they are', () => {
    const shown = show(Settings, { session: session() });
    const select = find<HTMLSelectElement>(shown, 'select');
    select.selectedIndex = 0;
    for (const listener of host.onRejected) {
      listener({
        channel: 'ahp-session:/1',
        action: { type: 'session/configChanged', config: { mode: 'ask' } },
        reason: 'no',
      });
    }
    flushSync();
    expect(select.selectedIndex).toBe(1);
  });

  it('say how many answers are remembered', () => {
    const option = { id: 'a', label: 'Always', allows: true };
    const remembered = ['ls', 'make'].map((about) => ({ kind: 'shell', about, option }));
    const shown = show(Settings, { session: sessionStore({ _meta: { remembered } }) });
    expect(words(find(shown, 'button'))).toBe('2 remembered answers');
    expect([...shown.querySelectorAll('dialog li')].map(words)).toEqual(['Command ls Always', 'Command make Always']);
  });

  it('say that everything is allowed, list the rules, and have people asked again', async () => {
    const permissions = {
      allowAll: true,
      approved: [{ kind: 'shell', argument: 'make:*' }],
      denied: [{ kind: 'url' }],
      directories: ['/w'],
    };
    const asked: unknown[] = [];
    host.client.requestOwn = (method, params) => {
      asked.push([method, params]);
      return Promise.resolve({});
    };
    const shown = show(Settings, { session: sessionStore({ _meta: { permissions } }) });
    expect(words(find(shown, 'button'))).toBe('Everything is allowed');
    expect([...shown.querySelectorAll('dialog li')].map(words)).toEqual([
      'Address all of them Deny',
      'Command make:* Allow',
      'Read /w Allow',
    ]);
    find(shown, 'dialog .danger').click();
    await settled();
    expect(asked).toEqual([['x-grove/permissions', { channel: 'ahp-session:/1', revoke: true }]]);
  });
});

describe('a prompt', () => {
  it('that is sent before the chat is known goes out when it is', async () => {
    const chat = new ChannelStore(host.client, 'chat', 'ahp-chat:/1');
    const shown = show(PromptBox, { chat, session: sessionStore({}), sent: () => {} });
    const field = find<HTMLTextAreaElement>(shown, 'textarea');
    field.value = 'hello';
    field.dispatchEvent(new Event('input', { bubbles: true }));
    field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
    flushSync();
    expect([dispatched.length, field.value]).toEqual([0, 'hello']);
    chat.state = { turns: [], status: 1 } as Partial<ChatState> as ChatState;
    flushSync();
    await settled();
    expect(dispatched).toMatchObject([{ type: 'chat/turnStarted', message: { text: 'hello' } }]);
    expect(field.value).toBe('');
  });
});

describe('commands', () => {
  const commands = ['compact', 'commit', 'init'].map((name) => ({ name, description: `about ${name}` }));
  const state: Partial<ChatState> = { turns: [], status: 1 };
  let shown: HTMLElement;
  let field: HTMLTextAreaElement;

  beforeEach(() => {
    const chat = { uri: 'ahp-chat:/1', state, pending: [], dispatch: (action: Action) => dispatched.push(action) };
    shown = show(PromptBox, { chat, session: sessionStore({ _meta: { commands } }), sent: () => {} });
    field = find<HTMLTextAreaElement>(shown, 'textarea');
  });

  function type(text: string): void {
    field.value = text;
    field.setSelectionRange(text.length, text.length);
    field.dispatchEvent(new Event('input', { bubbles: true }));
    flushSync();
  }
  async function press(key: string): Promise<void> {
    field.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    flushSync();
    await settled();
  }
  const offered = (): string[] => [...shown.querySelectorAll('[role=option]')].map(words);
  const chosen = (): string => words(shown.querySelector('[aria-selected=true]'));

  it('are offered at the beginning of a prompt only', () => {
    type('/co');
    expect(offered()).toEqual(['/compact about compact', '/commit about commit']);
    expect(field.getAttribute('aria-activedescendant')).toBe('suggestion-0');
    type('see /co');
    expect(offered()).toEqual([]);
    expect(field.hasAttribute('aria-activedescendant')).toBe(false);
  });

  it.each(['Enter', 'Tab'])('are chosen with the arrows and taken with %s', async (key) => {
    type('/co');
    await press('ArrowDown');
    expect(chosen()).toContain('/commit');
    await press('ArrowDown');
    expect(chosen()).toContain('/compact');
    await press('ArrowUp');
    await press(key);
    expect(field.value).toBe('/commit ');
    expect(offered()).toEqual([]);
    expect(dispatched).toEqual([]);
  });

  it('are closed with Escape, until something else is typed', async () => {
    type('/co');
    await press('Escape');
    expect(offered()).toEqual([]);
    type('/com');
    expect(offered()).toHaveLength(2);
  });

  it('that are typed whole are sent with Enter', async () => {
    type('/init');
    await press('Enter');
    expect(dispatched).toMatchObject([{ type: 'chat/turnStarted', message: { text: '/init' } }]);
  });

  it('are taken with a click', async () => {
    type('/');
    find(shown, '#suggestion-2').click();
    await settled();
    expect(field.value).toBe('/init ');
  });
});

describe('a warning', () => {
  it('is shown until it is dismissed, and another one again', () => {
    const shown = show(Warnings, { session: 'ahp-session:/1', warnings: ['careful', 'slippery'] });
    expect([...shown.querySelectorAll('.warning')].map(words)).toEqual(['careful', 'slippery']);
    find(shown, 'button').click();
    flushSync();
    expect([...shown.querySelectorAll('.warning')].map(words)).toEqual(['slippery']);
    const elsewhere = show(Warnings, { session: 'ahp-session:/2', warnings: ['careful'] });
    expect(elsewhere.querySelectorAll('.warning')).toHaveLength(1);
  });
});
