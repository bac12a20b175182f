/** The panels beside a conversation, for the tests of the tree and of the changes. */

import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
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

export interface Rig {
  host: Host;
  open(options?: BrowserContextOptions): Promise<Window>;
}

/** A host and a browser for the tests of a file. Every window must stay without errors. */
export function useRig(): Rig {
  let browser: Browser;
  let data: ReturnType<typeof dataFolder>;
  let windows: Window[] = [];
  const rig = {
    open: async (options: BrowserContextOptions = {}) => {
      const window = await openWindow(browser, options);
      windows.push(window);
      await window.page.goto(rig.host.link);
      return window;
    },
  } as Rig;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(async () => browser?.close());
  beforeEach(async () => {
    windows = [];
    data = dataFolder();
    rig.host = await startHost(data.path);
  });
  afterEach(async () => {
    const problems = windows.flatMap((window) => window.problems);
    await Promise.all(windows.map((window) => window.close()));
    await rig.host?.kill();
    data?.remove();
    expect(problems).toEqual([]);
  });
  return rig;
}

/** Sends a script, and waits for the end of its turn. */
export async function say(page: Page, steps: object[], last: string): Promise<void> {
  await prompt(page, script(steps));
  await answers(page).getByText(last).last().waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
}

/** A session with a turn for each text: a prompt, an answer with a tool, and the text. */
export async function session(page: Page, texts: string[]): Promise<void> {
  await newSession(page);
  for (const text of texts) {
    const tool = { name: 'look', input: { path: `${text}.txt` }, output: `output of ${text}` };
    await say(
      page,
      [{ title: 'A tree' }, { say: `About ${text}.` }, { tool }, { say: `Answer ${text}.` }],
      `Answer ${text}.`,
    );
  }
}

export const tree = (page: Page): Locator => page.getByRole('tree');
export const rows = (page: Page): Locator => tree(page).getByRole('treeitem');
/** A row by a text that no prompt is: scripts have the texts of their answers too. */
export const row = (page: Page, text: string): Locator =>
  rows(page).filter({ hasText: text }).filter({ hasNotText: 'script:' });
export const promptRow = (page: Page, text: string): Locator =>
  rows(page).filter({ hasText: text }).filter({ hasText: 'script:' });
export const here = (page: Page): Locator => tree(page).locator('[aria-current=location]');

export async function openTree(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Show the tree' }).click();
  await rows(page).first().waitFor();
}

/** Waits until the rows are as expected. */
export async function untilRows(page: Page, expected: (texts: string[]) => boolean): Promise<void> {
  await expect.poll(async () => expected(await rows(page).allInnerTexts()), { timeout: 10_000 }).toBe(true);
}

/** Selects a row and goes there, with the answer that a person gives in the dialog. */
export async function goTo(
  page: Page,
  target: Locator,
  choice = 'Without a summary',
  instructions = '',
): Promise<void> {
  await target.click();
  await page.getByRole('button', { name: 'Go here' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('radio', { name: choice }).check();
  if (instructions) await dialog.getByRole('textbox').fill(instructions);
  await dialog.getByRole('button', { name: 'Go', exact: true }).click();
}
