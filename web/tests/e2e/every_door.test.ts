/** One session through an editor, the page and version 1 of the protocol. `every_door.rs` adds the protocols without a screen. */

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { answers, conversation, dataFolder, openWindow, prompt, script, startBrowser, startHost } from './support';

let browser: Browser;

beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
});

type Message = { id?: number; method?: string; params?: any; result?: any; error?: any };

/** An editor: a program that speaks the Agent Client Protocol with `grove acp`. */
class Editor {
  readonly received: Message[] = [];
  private readonly child: ChildProcess;
  private listener = (): void => {};
  private sent = 0;

  constructor(data: string, home: string) {
    const program = process.env['GROVE_BIN'] ?? new URL('../../../target/debug/grove', import.meta.url).pathname;
    const env = { ...process.env, HOME: home, GROVE_CONFIG: `${home}/grove.toml` };
    this.child = spawn(program, ['acp', '--data-dir', data], { stdio: ['pipe', 'pipe', 'ignore'], env });
    createInterface(this.child.stdout!).on('line', (line) => {
      this.received.push(JSON.parse(line) as Message);
      this.listener();
    });
  }

  /** Waits for the first message that fits. */
  first(fits: (message: Message) => boolean): Promise<Message> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.received.find(fits);
        if (found) resolve(found);
      };
      this.listener = look;
      look();
    });
  }

  send(message: object): void {
    this.child.stdin!.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }

  /** Sends a request, and returns its id. */
  ask(method: string, params: object): number {
    this.sent += 1;
    this.send({ id: this.sent, method, params });
    return this.sent;
  }

  answer(id: number): Promise<Message> {
    return this.first((message) => message.id === id && message.method === undefined);
  }

  /** Waits until the editor shows a text of the agent. */
  shows(text: string): Promise<Message> {
    return this.first(({ params }) => (params?.update?.content?.text ?? '').endsWith(text));
  }

  close(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.child.once('exit', () => resolve()));
    this.child.stdin!.end();
    return ended;
  }
}

const asks = (door: string): string =>
  script([
    { say: `before ${door}, ` },
    { tool: { name: `tool-${door}`, input: 'ls', output: 'a.txt', permission: 'shell' } },
    { say: `after ${door}` },
  ]);

it('begins in an editor, is answered in the page, and ends in version 1', async () => {
  const data = dataFolder();
  const host = await startHost(data.path);
  const editor = new Editor(data.path, data.home);
  const window = await openWindow(browser);
  try {
    await editor.answer(editor.ask('initialize', { protocolVersion: 1, clientCapabilities: {} }));
    const made = await editor.answer(editor.ask('session/new', { cwd: data.home, mcpServers: [] }));
    const session = made.result.sessionId as string;
    const says = (text: string): object => ({ sessionId: session, prompt: [{ type: 'text', text }] });

    // The editor's prompt waits for the person, who answers in the page.
    const first = editor.ask('session/prompt', says(asks('editor')));
    const { page } = window;
    await page.goto(`${host.link}`);
    await page.getByRole('navigation', { name: 'Sessions' }).getByRole('link').first().click();
    const tool = conversation(page).getByRole('group', { name: 'Tool tool-editor' });
    await tool.getByRole('button', { name: /allow/i }).first().click();
    expect((await editor.answer(first)).result.stopReason).toBe('end_turn');
    await editor.first(({ method }) => method === '$/cancel_request');
    await answers(page).last().getByText('after editor').waitFor();

    // The page's prompt is answered in the editor.
    const known = editor.received.length;
    await prompt(page, asks('page'));
    const asked = await editor.first(
      (message) => editor.received.indexOf(message) >= known && message.method === 'session/request_permission',
    );
    const allow = asked.params.options.find(({ kind }: { kind: string }) => kind === 'allow_once');
    editor.send({ id: asked.id, result: { outcome: { outcome: 'selected', optionId: allow.optionId } } });
    await editor.shows('after page');
    await answers(page).last().getByText('after page').waitFor();

    // A program of version 1 has the last word.
    const other = await openWindow(browser);
    await other.page.goto(host.address);
    const turns = await other.page.evaluate(speakVersion1, { session: `scripted:/${session}`, token: host.token });
    await other.close();
    expect(turns).toEqual(['before editor, after editor', 'before page, after page', 'That was all.']);
    await answers(page).last().getByText('That was all.').waitFor();
    await editor.shows('That was all.');
    expect(window.problems).toEqual([]);
  } finally {
    await window.close();
    await editor.close();
    await host.kill();
    data.remove();
  }
});

/** In a browser: runs a last turn in version 1, and returns the answers of all turns. */
async function speakVersion1({ session, token }: { session: string; token: string }): Promise<string[]> {
  const socket = new WebSocket(`${location.origin.replace('http', 'ws')}/ws?tkn=${encodeURIComponent(token)}`);
  const received: any[] = [];
  let listener = (): void => {};
  socket.onmessage = (event) => {
    received.push(JSON.parse(event.data as string));
    listener();
  };
  await new Promise((resolve) => (socket.onopen = resolve));
  const until = (fits: (message: any) => boolean): Promise<any> =>
    new Promise((resolve) => {
      listener = () => received.some(fits) && resolve(received.find(fits));
      listener();
    });
  const ask = async (id: number, method: string, params: object): Promise<any> => {
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return (await until((message) => message.id === id)).result;
  };
  await ask(1, 'initialize', { protocolVersion: 1, clientId: 'version-1' });
  await ask(2, 'subscribe', { resource: session });
  const text = 'script:[{"say":"That was all."}]';
  const action = { type: 'session/turnStarted', session, turnId: 'last', userMessage: { text } };
  socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'dispatchAction', params: { clientSeq: 1, action } }));
  await until((message) => message.params?.envelope?.action.type === 'session/turnComplete');
  const { state } = await ask(3, 'subscribe', { resource: session });
  socket.close();
  const textOf = (part: any): string => (part.kind === 'markdown' ? part.content : '');
  return state.turns.map((turn: any) => turn.responseParts.map(textOf).join(''));
}
