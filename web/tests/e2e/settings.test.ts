import { createHash } from 'node:crypto';
import { appendFileSync, chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import jsQR from 'jsqr';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  answers,
  dataFolder,
  type Host,
  newSession,
  openWindow,
  prompt,
  script,
  startBrowser,
  startHost,
  type Window,
} from './support';

const PATH = process.env['PATH'] ?? '';
/** A folder for pictures of each section; none are taken without it. */
const pictures = process.env['SETTINGS_PICTURES'];

let browser: Browser;
let data: ReturnType<typeof dataFolder>;
let host: Host;
let windows: Window[];
/** The first folder of the host's `PATH`. */
let bin: string;
let config: string;

beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
});
beforeEach(async () => {
  windows = [];
  data = dataFolder();
  bin = join(data.home, 'bin');
  config = join(data.home, 'grove.toml');
  mkdirSync(bin);
  process.env['PATH'] = `${bin}:${PATH}`;
  host = await startHost(data.path);
  process.env['PATH'] = PATH;
});
afterEach(async () => {
  await Promise.all(windows.map((window) => window.close()));
  await host?.kill();
  data?.remove();
});

async function open(section: string, address = host.link, options = {}): Promise<Page> {
  const window = await openWindow(browser, options);
  windows.push(window);
  const { page } = window;
  await page.goto(address);
  await page.getByText('There are no sessions yet.').first().waitFor({ state: 'attached' });
  await show(page, section);
  return page;
}

async function show(page: Page, section: string): Promise<void> {
  await page.evaluate((name) => (location.hash = `#/settings/${name}`), section);
  await page.locator('.settings h2.section').waitFor();
}

/** Checks that no window had errors, except the expected ones. */
function expectQuiet(expected: RegExp = /^$/): void {
  expect(windows.flatMap((window) => window.problems).filter((problem) => !expected.test(problem))).toEqual([]);
}

/** A program that other processes can run. */
function executable(file: string, text: string): void {
  writeFileSync(file, text);
  chmodSync(file, 0o755);
}

/** An agent of the Agent Client Protocol that starts and logs in, and can do nothing else. */
const agentProgram = (): string => `#!${process.execPath}
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const results = {
    initialize: {
      protocolVersion: 1,
      agentCapabilities: {},
      authMethods: [{ id: 'browser', name: 'Browser <b>login</b>', description: 'Opens <i>a</i> browser' }],
    },
    authenticate: {},
  };
  const answer = method in results && params?.methodId !== 'wrong'
    ? { result: results[method] }
    : { error: { code: -32601, message: 'not found' } };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
});
`;

/** Serves one file on loopback. */
async function serveFile(content: string): Promise<{ url: string; server: Server }> {
  const server = createServer((_, response) => response.end(content));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/agent`, server };
}

/** Has the host know an agent \`tested\` that is downloaded from an address. */
function catalog(url: string, sha256: string): void {
  const platform = `linux-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}`;
  const file = join(data.home, 'catalog.toml');
  writeFileSync(
    file,
    `format = 1\ndate = "2099-01-01"\n[[agents]]\nid = "tested"\nname = "Tested"\ndescription = "for tests"\n` +
      `commands = ["tested-agent"]\nlog-in = "nothing to do"\n` +
      `[agents.package]\nkind = "binary"\nversion = "1.2.3"\n[agents.package.targets.${platform}]\n` +
      `url = "${url}"\nsha256 = "${sha256}"\nprogram = "tested-agent"\n`,
  );
  host.grove('agents', 'update', file, '--yes');
}

describe('agents', () => {
  it('are listed with what to do, and a new one is found by checking again', async () => {
    const page = await open('agents');
    const gemini = page.getByRole('article', { name: 'Gemini CLI' });
    await gemini.getByText('not installed').waitFor();
    await gemini.getByText('grove agents install gemini').waitFor();
    await page.getByRole('article', { name: 'Scripted' }).getByText('built in').waitFor();
    await page.getByRole('article', { name: 'Cursor' }).getByText('cannot install').waitFor();
    executable(join(bin, 'gemini'), '#!/bin/sh\necho 0.60.0\n');
    await page.getByRole('button', { name: 'Check again' }).click();
    await gemini.getByText('0.60.0', { exact: true }).waitFor();
    await gemini.getByText('0.61.0 available').waitFor();
    await page.reload();
    await gemini.getByText('0.61.0 available').waitFor();
    await gemini.getByText(join(bin, 'gemini')).waitFor();
    expectQuiet();
  });

  it('are installed after their commands were shown, and log in', async () => {
    const content = agentProgram();
    const { url, server } = await serveFile(content);
    try {
      catalog(url, createHash('sha256').update(content).digest('hex'));
      const page = await open('agents');
      const tested = page.getByRole('article', { name: 'Tested' });
      await tested.getByRole('button', { name: 'Install', exact: true }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText(url).waitFor();
      await dialog.getByRole('button', { name: 'Install', exact: true }).click();
      await page.getByText('tested 1.2.3 is installed.').waitFor();
      await tested.getByText('1.2.3', { exact: true }).waitFor();

      await tested.getByRole('button', { name: 'Log in' }).click();
      await dialog.getByText('Opens <i>a</i> browser').waitFor();
      await dialog.getByRole('button', { name: 'Log in with Browser <b>login</b>' }).click();
      await dialog.getByText('You are logged in.').waitFor();
      await dialog.getByRole('button', { name: 'Close' }).click();
      expectQuiet();
    } finally {
      server.close();
    }
  });

  it('that cannot be installed say why', async () => {
    const { url, server } = await serveFile('something else');
    try {
      catalog(url, '0'.repeat(64));
      const page = await open('agents');
      await page.getByRole('article', { name: 'Tested' }).getByRole('button', { name: 'Install', exact: true }).click();
      await page.getByRole('dialog').getByText(url).waitFor();
      await page.getByRole('dialog').getByRole('button', { name: 'Install', exact: true }).click();
      await page.getByText('tested was not installed.').waitFor();
      await page.getByText('is not the expected file').waitFor();
    } finally {
      server.close();
    }
  });

  it('with hostile names are text', async () => {
    const name = '<img src=x onerror=window.hacked=1>';
    const page = await open('agents');
    appendFileSync(
      config,
      `[agents.evil]\ncommand = ["${bin}/evil"]\nname = "${name}"\ndescription = "${name}\\u202e"\n`,
    );
    await page.getByRole('button', { name: 'Check again' }).click();
    await page.getByText(name, { exact: true }).waitFor();
    await page.getByText(`${name}\\u202e`).waitFor();
    expect(await page.evaluate(() => [document.images.length, 'hacked' in window])).toEqual([0, false]);
    expectQuiet();
  });
});

/** Reads the QR code in the dialog, as a camera would. */
async function scanned(page: Page): Promise<string | undefined> {
  const code = page.getByRole('img', { name: /QR code/ });
  const pixels = await code.evaluate(async (svg) => {
    // A page may not draw its own SVG into a canvas under this policy, so its rectangles are drawn.
    const size = (svg as SVGSVGElement).viewBox.baseVal.width;
    const scale = 4;
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = size * scale;
    const context = canvas.getContext('2d')!;
    context.fillStyle = '#fff';
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = '#000';
    context.setTransform(scale, 0, 0, scale, 4 * scale, 4 * scale);
    context.fill(new Path2D(svg.querySelector('path')!.getAttribute('d')!));
    return { data: [...context.getImageData(0, 0, canvas.width, canvas.height).data], width: canvas.width };
  });
  return jsQR(Uint8ClampedArray.from(pixels.data), pixels.width, pixels.width)?.data;
}

describe('devices', () => {
  it('are paired by a code, and lose their access with their token', async () => {
    const page = await open('devices');
    await page.getByRole('article', { name: 'host' }).getByText('the host’s own').waitFor();
    await page.getByRole('button', { name: 'Pair a device' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/good once, for \d+ seconds/).waitFor();
    await dialog.getByText('an address of this machine only').waitFor();
    const link = await scanned(page);
    expect(link).toMatch(new RegExp(`^${host.address}/#code=gc[0-9a-f]{80}$`));
    expect(await dialog.getByRole('link').textContent()).toBe(link);

    const second = await openWindow(browser);
    windows.push(second);
    await second.page.goto(link!);
    await second.page.getByText('There are no sessions yet.').waitFor();
    const said = await dialog.getByText(/A device was paired/).textContent();
    const name = /browser-[0-9a-f]+/.exec(said ?? '')?.[0] ?? 'none';
    await dialog.getByRole('button', { name: 'Close' }).click();

    const token = page.getByRole('article', { name });
    await token.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await token.waitFor({ state: 'detached' });
    // Its connection is closed, and the present key opens no other one.
    await second.page.getByText('Another program answers').first().waitFor();
    await second.page.reload();
    await second.page.getByRole('alert').getByText('revoked').waitFor();
    expectQuiet(/401 \(Unauthorized\)/);
  });

  it('get a token with the chosen rights, which is shown once', async () => {
    const page = await open('devices');
    await page.getByRole('button', { name: 'Make a token' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('watcher');
    await dialog.getByRole('checkbox', { name: /prompt/ }).uncheck();
    await dialog.getByRole('button', { name: 'Make the token' }).click();
    const secret = (await page.getByTestId('secret').textContent()) ?? '';
    expect(secret).toMatch(/^gt[0-9a-f]{80}$/);
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    const token = page.getByRole('article', { name: 'watcher' });
    expect(await token.locator('.scopes .badge').allTextContents()).toEqual(['read']);
    await token.getByText(/good until/).waitFor();
    expect(await page.content()).not.toContain(secret);

    // A reader may not make tokens, and is told so.
    const reader = await open('devices', `${host.address}/#token=${secret}`);
    await reader.getByRole('alert').getByText('needs the scope `admin`').waitFor();
    await show(reader, 'agents');
    await reader.getByRole('article', { name: 'Scripted' }).waitFor();
    expectQuiet();
  });
});

describe('rules', () => {
  it('are added as they were shown, decide, are tried on past requests, and are removed', async () => {
    const page = await open('rules');
    await page.getByText('There are no rules').waitFor();
    await page.evaluate(() => (location.hash = '#/'));
    await newSession(page);
    for (const command of ['cargo test one', 'cargo test two']) {
      await prompt(
        page,
        script([
          { tool: { name: 'sh', input: command, output: 'ran', permission: 'shell' } },
          { say: `after ${command}` },
        ]),
      );
      await page.getByRole('button', { name: 'Allow', exact: true }).click();
      await answers(page).getByText(`after ${command}`).waitFor();
    }
    await show(page, 'rules');
    await page.getByRole('button', { name: 'Add a rule' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Verdict').selectOption('deny');
    await dialog.getByLabel('Patterns, one a line').fill('cargo test *');
    await dialog.getByLabel('Reason').fill('people "test"');
    const text = '[[policy.rules]]\ndeny = "shell"\ncommand = "cargo test *"\nreason = "people \\"test\\""\n';
    expect(await dialog.locator('pre').textContent()).toBe(text);
    await dialog.getByRole('button', { name: 'Try it on past requests' }).click();
    await page.getByRole('button', { name: 'Run the backtest' }).click();
    await page.getByText('2 answered requests').waitFor();
    await page.getByText('You approved').first().waitFor();
    expect(await page.locator('.difference').count()).toBe(2);
    await page.getByRole('button', { name: 'Suggest rules' }).click();
    await page.getByText('would have given 2 of your answers').waitFor();
    if (pictures) await page.screenshot({ path: join(pictures, 'backtest.png'), fullPage: true });
    expect(readFileSync(config, 'utf8')).toBe('');

    await page.locator('.tried').getByRole('button', { name: 'Add a rule' }).click();
    await dialog.getByRole('button', { name: 'Add the rule' }).click();
    const rule = page.getByRole('article', { name: 'deny shell "cargo test *"' });
    await rule.getByText('grove.toml, line 1').waitFor();
    expect(readFileSync(config, 'utf8').trim()).toBe(text.trim().replace(/reason = .*/, `reason = 'people "test"'`));

    await page.getByLabel('Command').fill('ls && cargo test three');
    await page.getByRole('button', { name: 'Judge' }).click();
    await page.getByText('because of deny shell "cargo test *"').waitFor();

    await rule.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('There are no rules').waitFor();
    expect(readFileSync(config, 'utf8').trim()).toBe('');
    expectQuiet();
  });

  it('that are wrong are refused with the reason', async () => {
    const page = await open('rules');
    await page.getByRole('button', { name: 'Add a rule' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Of what').selectOption('fetch');
    await dialog.getByLabel('Patterns, one a line').fill('not a host/');
    await dialog.getByRole('button', { name: 'Add the rule' }).click();
    await dialog.getByRole('alert').waitFor();
    expect(readFileSync(config, 'utf8')).toBe('');
  });
});

describe('hosts', () => {
  it('are added once they answer, and a wrong address is refused with the reason', async () => {
    const otherData = dataFolder();
    const other = await startHost(otherData.path);
    try {
      const page = await open('hosts');
      const add = async (address: string, token: string): Promise<void> => {
        await page.getByLabel('Name').fill('lab');
        await page.getByLabel('Address').fill(address);
        await page.getByLabel('Token').fill(token);
        await page.getByRole('dialog').getByRole('button', { name: 'Add a host' }).click();
      };
      await page.getByText('There are no other hosts yet.').waitFor();
      await page.getByRole('button', { name: 'Add a host' }).click();
      await add('ws://127.0.0.1:1/', 'wrong');
      await page.getByRole('alert').getByText('lab was not added').waitFor();
      await page.getByRole('button', { name: 'Add it although it does not answer' }).waitFor();
      await add(`${other.address.replace('http', 'ws')}/`, other.token);
      const lab = page.getByRole('article', { name: 'lab' });
      await lab.getByText('reachable', { exact: true }).waitFor();
      await other.stop();
      await page.getByRole('button', { name: 'Check again' }).click();
      await lab.getByText('unreachable', { exact: true }).waitFor();
      expect(await page.content()).not.toContain(other.token);
      await lab.getByRole('button', { name: 'Remove' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
      await page.getByText('There are no other hosts yet.').waitFor();
      expectQuiet();
    } finally {
      await other.kill();
      otherData.remove();
    }
  });
});

describe('general settings', () => {
  it('change the language, the theme and the density of this browser', async () => {
    const page = await open('general');
    await page.getByRole('radio', { name: 'Dark' }).check();
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(await ground()).toBe('rgb(24, 26, 23)');
    await page.getByRole('radio', { name: 'High contrast' }).check();
    expect(await ground()).toBe('rgb(255, 255, 255)');
    await page.getByRole('radio', { name: 'Compact' }).check();
    await page.getByLabel('Language').selectOption('de');
    await page.getByRole('heading', { name: 'Allgemein' }).waitFor();
    expect(
      await page.evaluate(() => ({ ...document.documentElement.dataset, lang: document.documentElement.lang })),
    ).toEqual({ theme: 'contrast', density: 'compact', lang: 'de' });
    await page.getByRole('link', { name: 'Agenten' }).click();
    await page.getByRole('article', { name: 'Scripted' }).getByText('eingebaut').waitFor();
    await show(page, 'general');
    await page.getByLabel('Sprache').selectOption('');
    await page.getByRole('heading', { name: 'General' }).waitFor();
    expectQuiet();
  });

  it('show the settings of the host with their sources', async () => {
    const page = await open('general');
    appendFileSync(config, 'replay-actions = 5\n[agents.mine]\ncommand = ["x"]\nenv = { KEY = "a-secret-value" }\n');
    await show(page, 'agents');
    await show(page, 'general');
    const row = page.getByRole('row', { name: /^replay-actions/ });
    await row.getByText('grove.toml').waitFor();
    await page.getByText('Only changed ones').click();
    await page.getByRole('row', { name: /^durability/ }).waitFor({ state: 'detached' });
    await row.waitFor();
    expect(await page.content()).not.toContain('a-secret-value');
    expectQuiet();
  });

  it('are reached with the keyboard alone', async () => {
    const page = await open('general');
    await page.getByRole('link', { name: 'General' }).focus();
    for (let step = 0; step < 3; step++) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Devices' }).waitFor();
    await page.getByRole('button', { name: 'Make a token' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.textContent?.trim())).toBe('Make a token');
  });
});

it.runIf(pictures)('pictures are taken of every section', async () => {
  mkdirSync(pictures!, { recursive: true });
  executable(join(bin, 'gemini'), '#!/bin/sh\necho 0.60.0\n');
  writeFileSync(
    config,
    '[[policy.rules]]\nallow = "shell"\ncommand = ["cargo test *", "git status *"]\n\n[[policy.rules]]\ndeny = "shell"\ncommand = "git push *"\nreason = "people push"\n',
  );
  for (const [name, options] of [
    ['light', {}],
    ['dark', { colorScheme: 'dark' }],
    ['phone', { viewport: { width: 390, height: 844 } }],
  ] as const) {
    const page = await open('general', host.link, options);
    for (const section of ['general', 'agents', 'hosts', 'devices', 'rules', 'notifications']) {
      await show(page, section);
      await page.waitForTimeout(500);
      await page.screenshot({ path: join(pictures!, `${section}-${name}.png`) });
    }
    await show(page, 'devices');
    await page.getByRole('button', { name: 'Pair a device' }).click();
    await page.getByRole('img', { name: /QR code/ }).waitFor();
    await page.screenshot({ path: join(pictures!, `pair-${name}.png`) });
    await page.keyboard.press('Escape');
    await show(page, 'rules');
    await page.getByRole('button', { name: 'Add a rule' }).first().click();
    await page.screenshot({ path: join(pictures!, `rule-${name}.png`) });
    await page.keyboard.press('Escape');
    if (name !== 'light') continue;
    await show(page, 'general');
    await page.getByRole('radio', { name: 'High contrast' }).check();
    await show(page, 'agents');
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(pictures!, 'agents-contrast.png') });
  }
});
