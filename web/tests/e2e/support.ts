/** A real host and a real browser, both started by the test that needs them. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request, type RequestOptions } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core';

const program = process.env['GROVE_BIN'] ?? fileURLToPath(new URL('../../../target/debug/grove', import.meta.url));
const browserProgram = process.env['CHROMIUM_BIN'] ?? '/usr/bin/chromium';

/** A data folder and a home folder, deleted at the end of the test. */
export function dataFolder(): { path: string; home: string; remove(): void } {
  const root = mkdtempSync(join(tmpdir(), 'grove-e2e-'));
  const path = join(root, 'data');
  mkdirSync(homeOf(path));
  return { path, home: homeOf(path), remove: () => rmSync(root, { recursive: true, force: true, maxRetries: 3 }) };
}

const homeOf = (data: string): string => join(data, '../home');

export interface Host {
  address: string;
  token: string;
  /** The address for Copilot SDKs, if the host has one. */
  copilot: string | undefined;
  /** The page's address with the token. */
  link: string;
  /** Runs a command of the program, and returns what it prints. */
  grove(...args: string[]): string;
  stop(): Promise<void>;
  /** As in a power cut. */
  kill(): Promise<void>;
}

/** Starts a host with these arguments, and with the text of its own `grove.toml`. */
export async function startHost(data: string, port = 0, more: string[] = [], toml = ''): Promise<Host> {
  if (!existsSync(program)) throw new Error(`${program} is not there: build it, or say where it is with GROVE_BIN`);
  const args = ['serve', '--data-dir', data, '--listen', `127.0.0.1:${port}`, '--json', ...more];
  // Its own file, so that no settings of the machine's user apply.
  const config = join(homeOf(data), 'grove.toml');
  writeFileSync(config, toml, { mode: 0o600 });
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HOME: homeOf(data), GROVE_CONFIG: config },
  });
  let said = '';
  child.stderr.on('data', (text: Buffer) => (said += text.toString()));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const first = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    void ended.then(() => reject(new Error(`the host ended before it was there:\n${said}`)));
  });
  const { http, token, copilot } = JSON.parse(first) as { http: string; token: string; copilot?: string };
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    send(child, signal);
    await ended;
  };
  return {
    address: http,
    token,
    copilot,
    link: `${http}/#token=${encodeURIComponent(token)}`,
    grove: (...command) =>
      execFileSync(program, [...command, '--data-dir', data], {
        encoding: 'utf8',
        env: { ...process.env, HOME: homeOf(data), GROVE_CONFIG: config },
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim(),
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

/** A program on a host's port, with everything that it received. */
export interface Impostor {
  port: number;
  heard: { method: string; url: string; rest: string }[];
  answered: number[];
  /** Waits for this number of requests. */
  until(count: number): Promise<void>;
  close(): Promise<void>;
}

export async function startImpostor(
  port: number,
  answer: (url: string, headers: Record<string, string>) => Promise<{ status: number; body: string }>,
): Promise<Impostor> {
  const heard: Impostor['heard'] = [];
  const answered: number[] = [];
  let listener = (): void => {};
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    let body = '';
    request.on('data', (data: Buffer) => (body += data.toString()));
    request.on('end', () => {
      heard.push({ method, url, rest: JSON.stringify(headers) + body });
      const done = ({ status, body }: { status: number; body: string }): void => {
        answered.push(status);
        response.writeHead(status, { 'content-type': 'application/json' }).end(body);
        listener();
      };
      answer(url, headers as Record<string, string>).then(done, (error: unknown) =>
        done({ status: 500, body: String(error) }),
      );
    });
  });
  server.on('upgrade', (request, socket) => {
    heard.push({ method: 'UPGRADE', url: request.url ?? '', rest: JSON.stringify(request.headers) });
    socket.destroy();
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  return {
    port,
    heard,
    answered,
    until: (count) =>
      new Promise((resolve) => {
        listener = () => answered.length >= count && resolve();
        listener();
      }),
    close: () => new Promise((resolve) => (server.close(() => resolve()), server.closeAllConnections())),
  };
}

/** Forwards another program's request to a host, with given headers. */
export function passOn(
  host: Host,
  url: string,
  headers: Record<string, string | undefined>,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const named = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
    const given = { 'content-type': 'application/json', ...named };
    const options = { host: '127.0.0.1', port: portOf(host), path: url, method: 'POST', headers: given };
    const asked = request(options as RequestOptions, (response) => {
      let body = '';
      response.on('data', (data: Buffer) => (body += data.toString()));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    asked.on('error', reject).end();
  });
}

function send(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
}

export function portOf(host: Host): number {
  return Number(new URL(host.address).port);
}

export function startBrowser(more: string[] = []): Promise<Browser> {
  if (!existsSync(browserProgram)) throw new Error(`${browserProgram} is not there: install Debian's chromium`);
  return chromium.launch({
    executablePath: browserProgram,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...more,
    ],
  });
}

/** A browser window, with its errors. */
export interface Window {
  page: Page;
  /** Errors on the console, exceptions, and violations of the Content-Security-Policy. */
  problems: string[];
  close(): Promise<void>;
}

/** Messages that a browser writes to its console itself while a host is unreachable. */
export const WITHOUT_HOST = /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|WebSocket connection to/;

export async function openWindow(browser: Browser, options: BrowserContextOptions = {}): Promise<Window> {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`exception: ${error.message}`));
  await page.exposeFunction('reportViolation', (what: string) => problems.push(`policy: ${what}`));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      const report = (window as unknown as { reportViolation(what: string): void }).reportViolation;
      report(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  return { page, problems, close: () => context.close() };
}

/** The text of the conversation. */
export const conversation = (page: Page): Locator => page.getByRole('log', { name: 'Conversation' });

/** The agent's text, without the prompts. */
export const answers = (page: Page): Locator => conversation(page).locator('.answer');

/** Starts a session with the scripted agent, and opens it. */
export async function newSession(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'New session' }).first().click();
  await page.getByRole('radio', { name: /Scripted/ }).check();
  await page.getByRole('button', { name: 'Start session' }).click();
  await page.getByRole('textbox', { name: 'Prompt' }).waitFor();
}

export async function prompt(page: Page, text: string): Promise<void> {
  const box = page.getByRole('textbox', { name: 'Prompt' });
  await box.fill(text);
  await box.press('Enter');
}

export const script = (steps: object[]): string => `script:${JSON.stringify(steps)}`;
