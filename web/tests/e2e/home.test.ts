/** The home page, the list of all sessions, the palette and the keys, with real hosts and a real browser. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  answers,
  conversation,
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

let browser: Browser;
let folders: ReturnType<typeof dataFolder>[];
let hosts: Host[];
let windows: Window[];

beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
});
beforeEach(() => {
  [folders, hosts, windows] = [[], [], []];
});
afterEach(async () => {
  await Promise.all(windows.map((window) => window.close()));
  await Promise.all(hosts.map((host) => host.kill()));
  for (const folder of folders) folder.remove();
});

async function start(prepare: (home: string) => void = () => {}): Promise<Host> {
  const data = dataFolder();
  folders.push(data);
  prepare(data.home);
  const host = await startHost(data.path);
  hosts.push(host);
  return host;
}

async function open(host: Host, options = {}): Promise<Page> {
  const window = await openWindow(browser, options);
  windows.push(window);
  await window.page.goto(host.link);
  await nav(window.page).waitFor();
  return window.page;
}

const nav = (page: Page): Locator => page.getByRole('navigation', { name: 'Sessions' });
const rows = (page: Page): Locator => nav(page).locator('[data-row]');
const titled = (page: Page, title: string): Locator => rows(page).filter({ hasText: title });

/** A session with a title whose turn is over. */
async function finished(page: Page, title: string): Promise<void> {
  await newSession(page);
  await prompt(page, script([{ title }, { say: `Answer of ${title}` }]));
  await answers(page).getByText(`Answer of ${title}`).waitFor();
  await titled(page, title).waitFor();
}

function expectQuiet(): void {
  expect(windows.flatMap((window) => window.problems)).toEqual([]);
}

describe('the home page', () => {
  it('goes from the first run to a streamed answer with its prompt box', async () => {
    const host = await start();
    const page = await open(host);
    await page.getByText('Nothing waits for you.').waitFor();
    const box = page.getByRole('textbox', { name: 'First prompt' });
    await page.getByRole('combobox', { name: 'Agent' }).selectOption('scripted');
    await box.fill(script([{ say: 'It streams in pieces.', chunks: 6, delayMs: 30 }]));
    await box.press('Enter');
    await answers(page).getByText('It streams in pieces.').waitFor();
    // The box is empty again, and the session is in the list.
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Home' }).click();
    expect(await box.inputValue()).toBe('');
    await rows(page).first().waitFor();
    expectQuiet();
  });

  it('starts in a folder that is found by typing, and refuses one that does not exist', async () => {
    const host = await start((home) => mkdirSync(join(home, 'projects/site'), { recursive: true }));
    const page = await open(host);
    await page.getByRole('combobox', { name: 'Agent' }).selectOption('scripted');
    await page.getByRole('button', { name: /^Folder/ }).click();
    const dialog = page.getByRole('dialog');
    const path = dialog.getByRole('textbox', { name: 'Path of the folder' });
    await path.fill('nothing');
    await dialog.getByRole('button', { name: 'Use this folder' }).click();
    await dialog.getByText('is not an absolute path').waitFor();
    await path.fill(`${folders[0]!.home}/`);
    await dialog.getByRole('button', { name: /projects/ }).click();
    await dialog.getByRole('button', { name: /site/ }).click();
    await dialog.getByRole('button', { name: 'Use this folder' }).click();
    await page.getByRole('button', { name: /Folder.*site/ }).waitFor();
    await page.getByRole('textbox', { name: 'First prompt' }).fill(script([{ say: 'There.' }]));
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await answers(page).getByText('There.').waitFor();
    await page.getByRole('main').getByText('projects/site').waitFor();
    expectQuiet();
  });

  it('answers a permission and a question on a phone, and counts them in the title', async () => {
    const host = await start();
    const desk = await open(host);
    await newSession(desk);
    const steps = [
      { title: 'Clean up' },
      { tool: { name: 'shell', input: 'rm -r build', output: '', permission: 'shell' } },
      { ask: 'Which name should it have?' },
      { say: 'All done.' },
    ];
    await prompt(desk, script(steps));
    const phone = await open(host, { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true });
    const card = phone.getByRole('article', { name: 'Clean up' });
    await card.getByText('rm -r build').waitFor();
    expect(await phone.title()).toBe('(1) Grove');
    expect(await phone.locator('link[rel=icon]').getAttribute('href')).toMatch(/^data:image\/png/);
    expect(await phone.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await card.getByRole('button', { name: /allow/i }).first().tap();
    await card.getByLabel('Which name should it have?').fill('Ada');
    await card.getByRole('button', { name: 'Answer' }).tap();
    await phone.getByText('Nothing waits for you.').waitFor();
    await answers(desk).getByText('All done.').waitFor();
    await phone.waitForFunction(() => document.title === 'Grove');
    expectQuiet();
  });

  it('shows what runs with its activity, and what finished until it is read', async () => {
    const host = await start();
    const one = await open(host);
    await newSession(one);
    await prompt(
      one,
      script([{ title: 'Long work' }, { tool: { name: 'make', input: 'make all' } }, { sleepMs: 1500 }]),
    );
    const two = await open(host);
    const main = two.getByRole('main');
    await main
      .getByRole('region', { name: /Running/ })
      .getByText('Long work')
      .waitFor();
    // The first page has it open, so it is read there as soon as it ends. Elsewhere nobody looks.
    await one.goto(`${host.address}/#/new`);
    await main
      .getByRole('region', { name: /Finished/ })
      .getByText('Long work')
      .waitFor();
    await main.getByRole('button', { name: 'Mark all as read' }).click();
    await main.getByRole('region', { name: /Finished/ }).waitFor({ state: 'detached' });
    expectQuiet();
  });
});

describe('the list of all sessions', () => {
  const claude = (title: string): object => ({
    type: 'user',
    uuid: 'u',
    sessionId: 's',
    cwd: '/w',
    version: '2.1.0',
    timestamp: '2026-01-02T03:04:05.000Z',
    message: { role: 'user', content: title },
  });

  /** Histories of two tools in a home folder. */
  function histories(home: string): void {
    mkdirSync(join(home, '.claude/projects/-w'), { recursive: true });
    writeFileSync(join(home, '.claude/projects/-w/s.jsonl'), `${JSON.stringify(claude('Old words of Claude'))}\n`);
    const codex = join(home, '.codex/sessions/2026/01/02');
    mkdirSync(codex, { recursive: true });
    const id = '01a1e039-1686-7a20-b7e3-98dd8870ad1b';
    const lines = [
      { timestamp: '2026-01-02T03:04:05.000Z', type: 'session_meta', payload: { id, cwd: '/w' } },
      {
        timestamp: '2026-01-02T03:04:06.000Z',
        type: 'event_msg',
        payload: { type: 'user_message', message: 'Old words of Codex' },
      },
      {
        timestamp: '2026-01-02T03:04:06.000Z',
        type: 'response_item',
        payload: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Old words of Codex' }] },
      },
    ];
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    writeFileSync(join(codex, `rollout-2026-01-02T03-04-05-${id}.jsonl`), text);
  }

  it('has three hosts and the histories of two tools, and a request of another host is answered here', async () => {
    const [near, lab, box] = [await start(histories), await start(), await start()];
    const remote: Page[] = [];
    for (const [name, host] of Object.entries({ lab, box })) {
      const file = join(folders[0]!.home, name);
      writeFileSync(file, host.token, { mode: 0o600 });
      near.grove('hosts', 'add', name, `${host.address.replace('http', 'ws')}/ws`, '--token-file', file);
      const page = await open(host);
      await finished(page, `Work on ${name}`);
      remote.push(page);
    }
    const page = await open(near);
    await finished(page, 'Work here');
    for (const title of ['Work here', 'Work on lab', 'Work on box', 'Old words of Claude', 'Old words of Codex']) {
      await titled(page, title).waitFor();
    }
    await titled(page, 'Work on lab').getByText('lab', { exact: true }).waitFor();
    expect(await rows(page).count()).toBe(5);

    // Another tool's session opens at once, and cannot be written to.
    await titled(page, 'Old words of Claude').click();
    await conversation(page).getByText('Old words of Claude').waitFor();
    expect(await page.getByRole('textbox', { name: 'Prompt' }).count()).toBe(0);

    // A session of another host asks, and is answered from here.
    const steps = [{ tool: { name: 'shell', input: 'ls far', output: '', permission: 'shell' } }, { say: 'Listed.' }];
    await prompt(remote[0]!, script(steps));
    await page.getByRole('button', { name: /Home/ }).click();
    const card = page.getByRole('article', { name: 'Work on lab' });
    await card.getByText('ls far').waitFor();
    await card.getByRole('button', { name: /allow/i }).first().click();
    await answers(remote[0]!).getByText('Listed.').waitFor();
    await card.waitFor({ state: 'detached' });
    expectQuiet();
  });

  it('has sessions of another tool, which an agent of this host continues', async () => {
    const page = await open(await start(histories));
    await titled(page, 'Old words of Claude').click();
    await conversation(page).getByText('Old words of Claude').waitFor();
    const agent = page.getByRole('combobox', { name: 'Agent that continues it' });
    if (await agent.count()) await agent.selectOption('scripted');
    await page.getByRole('button', { name: /^Continue with/ }).click();
    await page.getByRole('textbox', { name: 'Prompt' }).waitFor();
    await prompt(page, script([{ say: 'New words.' }]));
    await answers(page).getByText('New words.').waitFor();
    await conversation(page).getByText('Old words of Claude').waitFor();
    expectQuiet();
  });

  it('is searched on the host, filtered, grouped and pinned', async () => {
    const host = await start();
    const page = await open(host);
    for (const title of ['Apple pie', 'Pear tart', 'Plum cake']) await finished(page, title);
    const search = page.getByRole('searchbox', { name: 'Search sessions' });
    await search.fill('TART pear');
    await titled(page, 'Apple pie').waitFor({ state: 'detached' });
    expect(await rows(page).count()).toBe(1);
    await search.fill('nothing like it');
    await page.getByText('No session matches.').waitFor();
    await search.press('Escape');
    await titled(page, 'Apple pie').waitFor();

    await titled(page, 'Apple pie').focus();
    await page.keyboard.press('p');
    await nav(page).getByRole('region', { name: 'Pinned' }).getByText('Apple pie').waitFor();
    // It is pinned for every window, and after a reload.
    await page.reload();
    await nav(page).getByRole('region', { name: 'Pinned' }).getByText('Apple pie').waitFor();
    await page.getByRole('combobox', { name: 'Group by' }).selectOption('Project');
    await nav(page).getByRole('region', { name: 'Today' }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Failed' }).click();
    await page.getByText('No session matches.').waitFor();
    await page.getByRole('button', { name: 'Failed' }).click();
    await titled(page, 'Plum cake').waitFor();
    expectQuiet();
  });

  it('changes several at once, with keys, and one by its menu', async () => {
    const host = await start();
    const page = await open(host);
    for (const title of ['First', 'Second', 'Third', 'Fourth']) await finished(page, title);
    await titled(page, 'Fourth').click({ modifiers: ['Control'] });
    await titled(page, 'Second').click({ modifiers: ['Shift'] });
    const bar = page.getByRole('toolbar');
    await bar.getByText('3 selected').waitFor();
    await bar.getByRole('button', { name: 'Archive' }).click();
    await titled(page, 'Third').waitFor({ state: 'detached' });
    await expect.poll(() => rows(page).count()).toBe(1);
    await page.getByRole('button', { name: 'Archived' }).click();
    await titled(page, 'Third').waitFor();
    expect(await rows(page).count()).toBe(3);

    await titled(page, 'Third').hover();
    await page.getByRole('button', { name: 'Actions for Third' }).click();
    await page.getByRole('menuitem', { name: 'Rename' }).click();
    await page.getByRole('textbox', { name: 'New title' }).fill('Third again');
    await page.keyboard.press('Enter');
    await titled(page, 'Third again').waitFor();
    await page.keyboard.press('Delete');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await titled(page, 'Third again').waitFor({ state: 'detached' });
    expectQuiet();
  });

  it('shows hostile titles as text', async () => {
    const host = await start();
    const page = await open(host);
    const title = '<img src=x onerror="window.hurt=1">\u202e evil \u0007';
    await newSession(page);
    await prompt(page, script([{ title }, { tool: { name: '<b>x</b>', permission: 'shell' } }, { say: 'x' }]));
    await page.getByRole('button', { name: /Home/ }).click();
    await page.getByRole('article').getByText('<img src=x').waitFor();
    const texts = await page.locator('[data-row], article').allInnerTexts();
    expect(texts.join('')).not.toContain('\u202e');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Go to' }).fill('evil');
    await page.getByRole('option').getByText('<img src=x').waitFor();
    expect(await page.locator('main img, nav img, dialog img').count()).toBe(0);
    expect(await page.evaluate(() => (window as unknown as { hurt?: number }).hurt)).toBeUndefined();
    expectQuiet();
  });
});

describe('the keyboard', () => {
  it('goes anywhere: palette, list, home, and all keys are shown', async () => {
    const host = await start();
    const page = await open(host);
    for (const title of ['Write the docs', 'Fix the replay']) await finished(page, title);
    const palette = page.getByRole('combobox', { name: 'Go to' });
    await page.keyboard.press('Control+k');
    await palette.waitFor();
    await page.keyboard.type('wdocs');
    await page.getByRole('option', { selected: true }).getByText('Write the docs').waitFor();
    await page.keyboard.press('Enter');
    await answers(page).getByText('Answer of Write the docs').waitFor();
    await palette.waitFor({ state: 'hidden' });

    await page.keyboard.press('Control+k');
    await page.keyboard.type('home');
    await page.keyboard.press('Enter');
    await page.getByRole('textbox', { name: 'First prompt' }).waitFor();

    // The focus is somewhere useful: letters are commands outside of fields.
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press('j');
    await page.waitForFunction(() => document.activeElement?.hasAttribute('data-row'));
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await conversation(page).waitFor();
    await nav(page).locator('[aria-current=page]').waitFor();

    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('Go to a session, command, agent or setting').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    // The browser gives the focus back a moment after the dialog is closed.
    await page.waitForFunction(() => !document.querySelector('dialog[open]') && document.hasFocus());
    await page.waitForTimeout(100);
    await page.keyboard.press('g');
    await page.keyboard.press('h');
    await page.getByRole('textbox', { name: 'First prompt' }).waitFor();
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press('n');
    await page.getByRole('button', { name: 'Start session' }).waitFor();

    // An archived row gives its focus to another one.
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press('j');
    const first = await page.evaluate(() => (document.activeElement as HTMLElement).dataset['row']);
    await page.keyboard.press('e');
    await page.waitForFunction((row) => {
      const now = (document.activeElement as HTMLElement).dataset['row'];
      return now !== undefined && now !== row;
    }, first);
    await page.keyboard.press('Control+b');
    await nav(page).waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Show the list' }).click();
    await nav(page).waitFor();
    expectQuiet();
  });
});

/** Pictures of the page in all sizes, to be looked at: `SCREENSHOTS=<folder> npm run e2e home`. */
const pictures = process.env['SCREENSHOTS'];
it.runIf(pictures)('makes pictures in all sizes', async () => {
  const host = await start();
  const page = await open(host);
  for (const title of ['Why does the replay test hang?', 'Rename the settings module', 'Release notes for 0.9']) {
    await finished(page, title);
  }
  await newSession(page);
  await prompt(
    page,
    script([{ title: 'Build everything' }, { tool: { name: 'make', input: 'make all' } }, { hang: true }]),
  );
  await newSession(page);
  await prompt(
    page,
    script([{ title: 'Clean up' }, { tool: { name: 'shell', input: 'rm -r build', output: '', permission: 'shell' } }]),
  );
  await page.getByRole('button', { name: /allow/i }).first().waitFor();
  for (const [width, height] of [
    [390, 844],
    [820, 1180],
    [1440, 900],
  ] as const) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const shot = await open(host, { viewport: { width, height }, colorScheme });
      await shot.getByRole('article').first().waitFor();
      await shot.screenshot({ path: join(pictures!, `home-${width}-${colorScheme}.png`) });
      if (width === 390) {
        await shot.screenshot({ path: join(pictures!, `home-whole-${colorScheme}.png`), fullPage: true });
        continue;
      }
      await shot.keyboard.press('Control+k');
      await shot.getByRole('option', { selected: true }).last().waitFor();
      await shot.screenshot({ path: join(pictures!, `palette-${width}-${colorScheme}.png`) });
    }
  }
});
