/** Every view of the page, with a host that has something to show in each. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { answers, type Host, script } from './support';

/** Sizes of a phone, a tablet and a desktop. */
export const SIZES = {
  phone: { width: 390, height: 844 },
  tablet: { width: 820, height: 1180 },
  desktop: { width: 1440, height: 900 },
} as const;

export type Size = keyof typeof SIZES;

const SECTIONS = ['general', 'agents', 'hosts', 'devices', 'rules', 'notifications'] as const;

/** The sessions that the views show. */
export interface Stage {
  host: Host;
  finished: string;
  waiting: string;
}

export interface View {
  name: string;
  /** Opens the view in a page that has logged in and shows the home page. */
  open(page: Page, stage: Stage): Promise<void>;
}

const answer = `I looked at how the replay window is **bounded**, since the test pushes more than it keeps.

| bound | default |
|---|---|
| events | 10,000 |
| bytes | 32 MiB |

- [x] read the module
- [ ] change the test

\`\`\`rust
while self.bytes > self.max_bytes {
    self.events.pop_front();
}
\`\`\`

So the gap is real: the client gets a snapshot. See [the protocol](https://example.com/protocol).`;

const finished = [
  { title: 'Why does the replay test hang?' },
  { reason: 'The test waits for an event that the window may have dropped. I look at how the window is bounded.' },
  { say: 'I read the module first.\n\n' },
  { tool: { name: 'read', input: 'src/sequencer/replay.rs', output: 'pub struct Replay { … }' } },
  { tool: { name: 'read', input: 'src/sequencer/mod.rs', output: 'mod replay;' } },
  {
    tool: {
      name: 'edit',
      input: 'src/sequencer/replay.rs',
      output: 'Changed',
      edits: [
        {
          path: '/project/src/sequencer/replay.rs',
          before: 'while self.bytes > self.max_bytes {\n    self.events.pop();\n}\n',
          after: 'while self.bytes > self.max_bytes {\n    self.events.pop_front();\n}\n',
        },
      ],
    },
  },
  { tool: { name: 'shell', input: 'cargo test replay', output: '\u001b[32mok\u001b[0m 3 tests', permission: 'shell' } },
  { say: answer },
  { usage: { inputTokens: 5200, outputTokens: 430, context: { used: 5630, size: 200000 } } },
];

const waiting = [
  { title: 'Rename the settings module' },
  { say: 'I rename the module and its uses, and run the tests before that.\n\n' },
  { tool: { name: 'shell', input: 'cargo test --workspace --quiet', output: 'ok', permission: 'shell' } },
];

/** Starts the sessions of the views. */
export async function prepare(host: Host, folder: string): Promise<Stage> {
  const project = join(folder, 'acme-site');
  mkdirSync(project, { recursive: true });
  writeFileSync(join(project, 'README.md'), '# Acme\n');
  const run = (steps: object[]): string => {
    const lines = host.grove('run', '--json', '--yes', '--cwd', project, script(steps)).split('\n');
    return (JSON.parse(lines.at(-1)!) as { session: string }).session;
  };
  const failed = run([{ title: 'A page for the release notes' }, { say: 'Done.' }]);
  const stage = { host, finished: run(finished), waiting: run([{ say: 'I am ready.' }]) };
  host.grove('send', failed, script([{ title: 'Translate the manual' }, { fail: 'the model is overloaded' }]));
  host.grove('send', stage.waiting, script(waiting));
  return stage;
}

const at = (address: string) => async (page: Page) => {
  await page.evaluate((hash) => (location.hash = hash), address);
};
const session = (uri: string, more = ''): string => `#/session/${encodeURIComponent(uri)}${more}`;

export const VIEWS: View[] = [
  {
    name: 'home',
    open: async (page) => {
      await page.getByText('Why does the replay test hang?').first().waitFor();
    },
  },
  { name: 'new', open: at('#/new') },
  {
    name: 'session',
    open: async (page, { finished }) => {
      await at(session(finished))(page);
      await answers(page).getByText('the gap is real').waitFor();
    },
  },
  {
    name: 'permission',
    open: async (page, { waiting }) => {
      await at(session(waiting))(page);
      await page.getByText('Run this command?').first().waitFor();
    },
  },
  {
    name: 'tree',
    open: async (page, { finished }) => {
      await at(session(finished, '?panel=tree'))(page);
      await page.getByRole('treeitem').first().waitFor();
    },
  },
  {
    name: 'changes',
    open: async (page, { finished }) => {
      await at(session(finished, '?panel=changes'))(page);
      await page.getByText('replay.rs').last().waitFor();
    },
  },
  {
    name: 'palette',
    open: async (page) => {
      await page.keyboard.press('Control+k');
      await page.getByRole('dialog').waitFor();
    },
  },
  {
    name: 'keys',
    open: async (page) => {
      await page.locator('#main').focus();
      await page.keyboard.press('?');
      await page.getByRole('dialog').waitFor();
    },
  },
  ...SECTIONS.map((section) => ({
    name: `settings-${section}`,
    open: async (page: Page) => {
      await at(`#/settings/${section}`)(page);
      await page.getByRole('heading', { level: 2 }).first().waitFor();
      // The parts of a section come from the host.
      await page.waitForTimeout(300);
    },
  })),
];
