// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Agents, grouped } from '../../src/store/agents.svelte';
import { applyAppearance, chooseDensity, chooseTheme, chosenTheme } from '../../src/store/appearance';
import { KnownHosts } from '../../src/store/known_hosts.svelte';
import { Loaded, onConnection } from '../../src/store/loaded.svelte';
import { Policy } from '../../src/store/policy.svelte';
import { isLoopback, pairingLink, Tokens } from '../../src/store/tokens.svelte';
import { quoted, ruleToml, subjectOf } from '../../src/text/rules';
import type { AgentRow } from '../../src/wire/administration';

type Params = Record<string, unknown>;

/** A host whose answers a test gives, with everything that it was asked. */
class TestHost {
  readonly asked: [string, Params][] = [];
  answers: Record<string, (params: Params) => unknown> = {};

  async requestOwn(method: `x-grove/${string}`, params: Params): Promise<unknown> {
    this.asked.push([method, params]);
    const answer = this.answers[method];
    if (!answer) throw new Error(`no answer to ${method}`);
    return answer(params);
  }
}

let host: TestHost;

beforeEach(() => {
  host = new TestHost();
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const agent = (id: string, more: Partial<AgentRow> = {}): AgentRow => ({
  id,
  name: id,
  availability: 'installed',
  installed: true,
  outdated: false,
  command: [id],
  isDefault: false,
  source: 'catalog',
  ...more,
});

describe('fetched data', () => {
  test('is that of the last request, and stays after a failure', async () => {
    const answers: ((value: number) => void)[] = [];
    const loaded = new Loaded(() => new Promise<number>((resolve) => answers.push(resolve)));
    const [first, second] = [loaded.load(), loaded.load()];
    answers[1]!(2);
    await second;
    answers[0]!(1);
    await first;
    expect([loaded.value, loaded.busy]).toEqual([2, false]);
    await loaded.take(Promise.reject(new Error('away')));
    expect([loaded.value, loaded.problem, loaded.busy]).toEqual([2, 'away', false]);
  });
});

describe('a connection', () => {
  test('that is new has data fetched, for as long as it is shown', () => {
    const host = { status: { kind: 'connecting' }, onConnected: new Set<() => void>() };
    let loads = 0;
    const stop = onConnection(host, () => loads++);
    expect(loads).toBe(0);
    for (const connected of host.onConnected) connected();
    expect(loads).toBe(1);
    stop();
    expect(host.onConnected.size).toBe(0);
    onConnection({ ...host, status: { kind: 'online' } }, () => loads++);
    expect(loads).toBe(2);
  });
});

describe('agents', () => {
  test('that can be used come first', () => {
    const missing = agent('b', { installed: false, availability: 'missing' });
    expect(grouped([missing, agent('a')])).toEqual({ usable: [agent('a')], others: [missing] });
  });

  test('are listed again after an installation, whose output is put together', async () => {
    const agents = new Agents(host);
    const states = [
      { state: 'running', lines: ['one'], lineCount: 1 },
      { state: 'running', lines: ['two'], lineCount: 2 },
      { state: 'done', lines: [], lineCount: 2 },
    ];
    const installation = { id: 'codex', version: '1' };
    host.answers = {
      'x-grove/agents/install': () => ({
        installation: { ...installation, state: 'running', lines: [], lineCount: 0 },
      }),
      'x-grove/agents/installStatus': () => ({ installation: { ...installation, ...states.shift() } }),
      'x-grove/agents/list': () => ({ agents: [agent('codex')], catalogDate: '2026-01-01' }),
    };
    await agents.install({ id: 'codex', version: '1' });
    await vi.advanceTimersByTimeAsync(2_000);
    expect(agents.installation).toMatchObject({ state: 'done', lines: ['one', 'two'] });
    expect(host.asked.map(([, params]) => params['after']).filter((after) => after !== undefined)).toEqual([0, 1, 2]);
    expect(agents.list.value?.agents.map((one) => one.id)).toEqual(['codex']);
  });

  test('keep a bounded part of an installer’s output', async () => {
    const agents = new Agents(host);
    const lines = Array.from({ length: 600 }, (_, at) => String(at));
    host.answers['x-grove/agents/installStatus'] = () => ({
      installation: { id: 'a', version: '1', state: 'failed', lines, lineCount: 600, error: 'no' },
    });
    await agents.follow();
    expect(agents.installation?.lines.length).toBe(500);
    expect(agents.installation?.lines.at(-1)).toBe('599');
  });

  test('tell their ways to log in after they were asked', async () => {
    const agents = new Agents(host);
    const methods = [{ id: 'browser', name: 'Browser' }];
    host.answers['x-grove/agents/check'] = ({ id }) => ({ agents: [agent(String(id), { login: { methods } })] });
    expect(await agents.loginMethods('mine')).toEqual(methods);
    expect(agents.list.value?.agents[0]?.login?.methods).toEqual(methods);
  });
});

describe('hosts', () => {
  test('are listed again once one was added, and not while its certificate is compared', async () => {
    const hosts = new KnownHosts(host);
    host.answers['x-grove/hosts/add'] = ({ pin }) => (pin ? { added: true } : { added: false, certificate: 'c' });
    host.answers['x-grove/hosts/list'] = () => ({ hosts: [{ name: 'lab', state: 'ready', hasToken: true }] });
    const wanted = { name: 'lab', address: 'wss://lab/', token: 't' };
    expect((await hosts.add(wanted)).certificate).toBe('c');
    expect(hosts.list.value).toBeUndefined();
    await hosts.add({ ...wanted, pin: 'c' });
    expect(hosts.list.value?.hosts[0]?.name).toBe('lab');
  });
});

describe('tokens', () => {
  test('of a device that used the code end the pairing', async () => {
    const names = ['host'];
    host.answers = {
      'x-grove/tokens/list': () => ({ tokens: names.map((name) => ({ name, scopes: [] })) }),
      'x-grove/tokens/issueCode': () => ({ secret: 'gc1', expiresInMs: 60_000 }),
    };
    const pairing = new Tokens(host).pair();
    await pairing.renew();
    expect([pairing.code, pairing.endsAt - Date.now()]).toEqual(['gc1', 60_000]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(pairing.paired).toBeUndefined();
    names.push('browser-1');
    await vi.advanceTimersByTimeAsync(2_000);
    expect([pairing.paired, pairing.code]).toEqual(['browser-1', undefined]);
    const asked = host.asked.length;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(host.asked.length).toBe(asked);
  });

  test('are asked for no longer when the code is not shown any more', async () => {
    host.answers['x-grove/tokens/list'] = () => ({ tokens: [] });
    host.answers['x-grove/tokens/issueCode'] = () => ({ secret: 'gc1', expiresInMs: 60_000 });
    const pairing = new Tokens(host).pair();
    await pairing.renew();
    pairing.close();
    const asked = host.asked.length;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(host.asked.length).toBe(asked);
  });

  test('with a reason why there is no code', async () => {
    host.answers['x-grove/tokens/list'] = () => ({ tokens: [] });
    const pairing = new Tokens(host).pair();
    await pairing.renew();
    expect(pairing.problem).toContain('issueCode');
  });

  test('are in links of the page’s own address', () => {
    expect(pairingLink('https://box:4747/?a=b#/settings/devices', 'gc1')).toBe('https://box:4747/#code=gc1');
    expect(['127.0.0.1', 'localhost', '[::1]', 'box', '192.168.0.2'].map(isLoopback)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });
});

describe('rules', () => {
  test('are tried page by page with the same params', async () => {
    const policy = new Policy(host);
    const difference = (subject: string) => ({ subject });
    host.answers['x-grove/policy/test'] = ({ cursor }) =>
      cursor
        ? { requests: 2, differences: [difference('b')] }
        : { requests: 2, differences: [difference('a')], nextCursor: '1' };
    await policy.test(7, '[[policy.rules]]');
    await policy.more();
    await policy.more();
    expect(policy.report?.differences).toEqual([difference('a'), difference('b')]);
    const [first, second] = host.asked.map(([, params]) => params);
    expect(second).toEqual({ ...first, cursor: '1' });
    expect(host.asked.length).toBe(2);
  });

  test('say why a backtest failed', async () => {
    const policy = new Policy(host);
    await policy.test(7, undefined);
    expect([policy.problem, policy.busy]).toEqual(['no answer to x-grove/policy/test', undefined]);
  });

  test('are written as the file has them, whatever a person types', () => {
    const draft = { verdict: 'allow', kind: 'shell', patterns: ' cargo test * \n\n', agent: '', reason: '' } as const;
    expect(ruleToml(draft)).toBe('[[policy.rules]]\nallow = "shell"\ncommand = "cargo test *"\n');
    const more = { ...draft, verdict: 'deny', kind: 'edit', patterns: 'a\nb', agent: 'codex', reason: 'x' } as const;
    expect(ruleToml(more)).toBe('[[policy.rules]]\ndeny = "edit"\npath = ["a", "b"]\nagent = "codex"\nreason = "x"\n');
    expect(ruleToml({ ...draft, patterns: '' })).toBe('[[policy.rules]]\nallow = "shell"\n');
    expect(quoted('a"\\\n\u0007]')).toBe('"a\\"\\\\\\u000a\\u0007]"');
  });

  test('judge a request by its kind', () => {
    expect(subjectOf('shell', 'ls')).toEqual({ kind: 'shell', command: 'ls' });
    expect(subjectOf('read', '.env')).toEqual({ kind: 'read', path: '.env' });
    expect(subjectOf('mcp', 'a/b')).toEqual({ kind: 'mcp', tool: 'a/b' });
  });
});

describe('the appearance', () => {
  const attributes = () => ({ ...document.documentElement.dataset });

  test('is stored on the device, and the usual one leaves nothing', () => {
    chooseTheme('contrast');
    chooseDensity('compact');
    expect(attributes()).toEqual({ theme: 'contrast', density: 'compact' });
    chooseTheme('system');
    chooseDensity('normal');
    expect([attributes(), localStorage.length]).toEqual([{}, 0]);
  });

  test('of an unknown theme is the system’s', () => {
    localStorage.setItem('grove-theme', '<img>');
    applyAppearance();
    expect([chosenTheme(), attributes()]).toEqual(['system', {}]);
    localStorage.clear();
  });
});
