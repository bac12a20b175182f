/** Pages of other sites against every door of a host: none gets in, and nothing changes. */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { dataFolder, type Host, openWindow, startBrowser, startHost, type Window } from './support';

/** A site of somebody else. Its name leads to this machine, as after DNS rebinding. */
const OTHER_NAME = 'evil.example';

let browser: Browser;
let data: ReturnType<typeof dataFolder>;
let host: Host;
let site: Server;
let sitePort: number;
let windows: Window[];

beforeAll(async () => {
  browser = await startBrowser([`--host-resolver-rules=MAP ${OTHER_NAME} 127.0.0.1`]);
  site = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>another site</title>');
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  sitePort = (site.address() as AddressInfo).port;
});
afterAll(async () => {
  await browser?.close();
  site?.close();
});
beforeEach(async () => {
  windows = [];
  data = dataFolder();
  host = await startHost(data.path, 0, ['--copilot-listen', '127.0.0.1:0']);
});
afterEach(async () => {
  await Promise.all(windows.map((window) => window.close()));
  await host?.kill();
  data?.remove();
});

async function visit(address: string): Promise<Page> {
  const window = await openWindow(browser);
  windows.push(window);
  await window.page.goto(address);
  return window.page;
}

/** What the host says of itself, to those with the token. */
async function status(): Promise<Record<string, unknown>> {
  const answer = await fetch(`${host.address}/healthz`, { headers: { authorization: `Bearer ${host.token}` } });
  return (await answer.json()) as Record<string, unknown>;
}

/** Tries every door from inside a page. Even a page that knows the token must not get in. Returns what worked. */
function tryEveryDoor(page: Page, address: string, copilot: string, token: string): Promise<string[]> {
  return page.evaluate(
    async ({ address, copilot, token }) => {
      const worked: string[] = [];
      const create = JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'createSession',
        params: { session: 'scripted:/x' },
      });
      const connect = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'connect', params: { token } });
      const bearer = { authorization: `Bearer ${token}` };
      const nonce = '0a'.repeat(32);
      const requests: [string, string, RequestInit][] = [
        ['GET', '/', {}],
        ['GET', '/healthz', {}],
        ['GET', `/healthz?tkn=${token}`, {}],
        ['GET', '/healthz', { headers: bearer }],
        ['GET', '/metrics', {}],
        ['GET', '/metrics', { headers: bearer }],
        ['POST', '/ticket', { body: '' }],
        ['POST', '/ticket', { headers: bearer }],
        ['POST', `/ticket?tkn=${token}`, { body: '{}', headers: { 'content-type': 'text/plain' } }],
        ['POST', `/proof?nonce=${nonce}`, {}],
        ['POST', `/proof?nonce=${nonce}`, { body: '{}', headers: { 'content-type': 'application/json' } }],
        ['POST', '/x-grove', { body: create, headers: { 'content-type': 'text/plain' } }],
        ['POST', '/x-grove', { body: create, headers: { ...bearer, 'content-type': 'application/json' } }],
        ['GET', '/copilot', { headers: bearer }],
        ['GET', `/acp?tkn=${token}`, { headers: bearer }],
        ['DELETE', '/', { headers: bearer }],
        ['PUT', '/', { body: create, headers: bearer }],
      ];
      for (const [method, path, init] of requests) {
        for (const mode of ['cors', 'no-cors'] as const) {
          // A browser does not even send other methods, nor headers of the page's own, without permission.
          const options = mode === 'no-cors' ? { method, mode, body: init.body ?? null } : { method, mode, ...init };
          if (mode === 'no-cors' && !['GET', 'POST'].includes(method)) continue;
          if (method === 'GET') delete (options as RequestInit).body;
          try {
            await fetch(`${address}${path}`, { ...options, credentials: 'include' });
            worked.push(`${method} ${path} (${mode})`);
          } catch {
            // Refused, or not readable for this page.
          }
        }
      }
      const socket = (url: string) =>
        new Promise<boolean>((resolve) => {
          const socket = new WebSocket(url);
          socket.onopen = () => resolve(true);
          socket.onerror = () => resolve(false);
        });
      const ws = address.replace('http', 'ws');
      for (const path of [
        '/ws',
        `/ws?tkn=${token}`,
        `/?tkn=${token}`,
        '/ws?ticket=x',
        '/copilot',
        `/copilot?tkn=${token}`,
        '/acp',
        `/acp?tkn=${token}`,
      ]) {
        if (await socket(`${ws}${path}`)) worked.push(`WebSocket ${path}`);
      }
      // The port for Copilot SDKs speaks no HTTP: a body that looks like its messages must not be read as one.
      const framed = `Content-Length: ${connect.length}\r\n\r\n${connect}`;
      try {
        await fetch(`http://${copilot}/`, { method: 'POST', mode: 'no-cors', body: framed });
        worked.push('the Copilot port, as HTTP');
      } catch {
        // It is no HTTP.
      }
      if (await socket(`ws://${copilot}/`)) worked.push('the Copilot port, as a WebSocket');
      return worked;
    },
    { address, copilot, token },
  );
}

async function nothingWorksFrom(address: string): Promise<void> {
  const before = await status();
  const page = await visit(address);
  const answers: string[] = [];
  page.on('response', (response) => {
    const method = response.request().method();
    if (method !== 'GET' && response.url().startsWith(host.address) && response.status() < 400) {
      answers.push(`${method} ${response.url()}: ${response.status()}`);
    }
  });
  const copilot = host.copilot ?? '';
  expect(copilot).toMatch(/^127\.0\.0\.1:/);
  expect(await tryEveryDoor(page, host.address, copilot, host.token)).toEqual([]);
  expect(answers).toEqual([]);
  expect(await status()).toEqual(before);
}

it('a page on another port of this machine gets in nowhere', async () => {
  await nothingWorksFrom(`http://127.0.0.1:${sitePort}/`);
});

it('a page of another site gets in nowhere', async () => {
  await nothingWorksFrom(`http://${OTHER_NAME}:${sitePort}/`);
});

it('a form of another site is refused', async () => {
  const before = await status();
  for (const path of ['/x-grove', '/ticket', `/proof?nonce=${'0a'.repeat(32)}`]) {
    const page = await visit(`http://${OTHER_NAME}:${sitePort}/`);
    const answer = page.waitForResponse((response) => response.url().startsWith(host.address));
    await page.evaluate((url) => {
      const form = document.createElement('form');
      form.method = 'POST';
      form.enctype = 'text/plain';
      form.action = url;
      document.body.append(form);
      form.submit();
    }, `${host.address}${path}`);
    expect((await answer).status(), path).toBe(403);
  }
  expect(await status()).toEqual(before);
});

it('a name of another site that leads to this machine shows nothing of the host', async () => {
  const port = new URL(host.address).port;
  const before = await status();
  const window = await openWindow(browser);
  windows.push(window);
  for (const path of ['/', '/healthz', `/healthz?tkn=${host.token}`, '/metrics', '/index.html']) {
    const answer = await window.page.goto(`http://${OTHER_NAME}:${port}${path}`);
    expect([path, answer?.status()]).toEqual([path, 403]);
  }
  // The refusal is a page of that name's own origin: scripts there are still nobody.
  const refused = await window.page.evaluate(async (token) => {
    const statuses: (number | string)[] = [];
    for (const [method, path] of [
      ['GET', '/healthz'],
      ['POST', '/ticket'],
      ['POST', '/x-grove'],
      ['POST', `/proof?nonce=${'0a'.repeat(32)}`],
    ] as const) {
      const answer = fetch(path, { method, headers: { authorization: `Bearer ${token}` } });
      statuses.push(
        await answer.then(
          (found) => found.status,
          () => 'not sent',
        ),
      );
    }
    return statuses;
  }, host.token);
  for (const status of refused) expect([403, 'not sent']).toContain(status);
  expect(await status()).toEqual(before);
});
