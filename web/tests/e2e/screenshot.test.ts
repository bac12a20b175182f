/** The picture in the README. Only taken on request, with `SCREENSHOT=<file> npm run e2e screenshot`. */

import { it } from 'vitest';
import type { Page } from 'playwright-core';
import { conversation, dataFolder, openWindow, prompt, script, startBrowser, startHost } from './support';

const file = process.env['SCREENSHOT'];

const steps = [
  { title: 'Why does the replay test hang?' },
  { reason: 'The test waits for an event that the window may have dropped. I look at how the window is bounded.' },
  { say: 'I would look at how the replay window is **bounded** first, since the test pushes more than it keeps.\n\n' },
  { tool: { name: 'read', input: 'src/sequencer/replay.rs', output: 'pub struct Replay { … }' } },
  {
    say: 'The window drops its oldest events by *count and bytes*. The test fills it by bytes:\n\n```rust\nwhile self.bytes > self.max_bytes {\n    self.events.pop_front();\n}\n```\n\nSo the gap is real, and the client should get a snapshot. I run it to be sure.\n\n',
  },
  { tool: { name: 'shell', input: 'cargo test -p grove-host replay', output: 'ok', permission: 'shell' } },
  { say: 'It passes now.' },
];

/** A session in a folder with a suitable name. */
async function newSession(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'New session' }).first().click();
  await page.getByRole('textbox', { name: /directory/i }).fill('/home/you/grove');
  await page.getByRole('button', { name: 'Start session' }).click();
  await page.getByRole('textbox', { name: 'Prompt' }).waitFor();
}

it.runIf(file)('is taken', async () => {
  const data = dataFolder();
  const host = await startHost(data.path);
  const browser = await startBrowser();
  try {
    const { page } = await openWindow(browser, { viewport: { width: 1180, height: 760 }, deviceScaleFactor: 2 });
    await page.goto(host.link);
    for (const title of ['Rename the settings module', 'A page for the release notes']) {
      await newSession(page);
      await prompt(page, script([{ title }, { say: 'Done.' }]));
      await conversation(page).getByText('Done.').waitFor();
    }
    await newSession(page);
    await prompt(page, script(steps));
    await page.getByText('Run this command?').waitFor();
    await page.screenshot({ path: file! });
  } finally {
    await browser.close();
    await host.kill();
    data.remove();
  }
});
