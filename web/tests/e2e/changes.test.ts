import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { say, useRig } from './panels';
import { conversation, newSession, script } from './support';

const rig = useRig();

const lines = (count: number, changed: Record<number, string> = {}): string =>
  Array.from({ length: count }, (_, n) => `${changed[n + 1] ?? `let line${n + 1} = ${n + 1};`}\n`).join('');

interface Edit {
  path: string;
  before?: string;
  after?: string;
}

/** A turn in which the agent changes files. */
async function edit(page: Page, edits: Edit[], text: string): Promise<void> {
  await say(page, [{ title: 'Changes' }, { tool: { name: 'edit', output: 'ok', edits } }, { say: text }], text);
}

async function openChanges(page: Page): Promise<void> {
  await page.getByRole('button', { name: /Show the changed files/ }).click();
  await panel(page).getByRole('heading', { name: 'Changes', level: 2 }).waitFor();
}

const panel = (page: Page) => page.getByRole('complementary', { name: 'Changes' });
const file = (page: Page, path: string) => panel(page).getByRole('region', { name: path, exact: true });
const diffOf = (page: Page, name: string) => panel(page).getByRole('region', { name: `Changes of ${name}` });

describe('changed files', () => {
  it('of a session are listed together, and those of a turn alone', async () => {
    const { page } = await rig.open();
    await newSession(page);
    const [first, second] = [lines(40, { 20: 'let changed = 1;' }), lines(40, { 20: 'let changed = 2;' })];
    await edit(
      page,
      [
        { path: '/w/src/main.ts', before: lines(40), after: first },
        { path: '/w/new.md', after: '# New\n' },
      ],
      'First.',
    );
    await edit(
      page,
      [
        { path: '/w/src/main.ts', before: first, after: second },
        { path: '/w/gone.txt', before: 'x\n' },
      ],
      'Second.',
    );
    // The sizes of both edits.
    expect(await page.getByRole('button', { name: 'Show the changed files, 3 files' }).innerText()).toContain('+3');
    await openChanges(page);
    const main = file(page, '/w/src/main.ts');
    await main.getByText('2 edits together').waitFor();
    // Before the first and after the last: one line was changed.
    await diffOf(page, 'main.ts').getByText('let changed = 2;').waitFor();
    expect(await main.getByText('let changed = 1;').count()).toBe(0);
    expect((await main.locator('h3').innerText()).replace(/\s+/g, ' ')).toMatch(/\+1.*−1/);
    expect(await file(page, '/w/new.md').locator('.mark').innerText()).toBe('new');
    expect(await file(page, '/w/gone.txt').locator('.mark').innerText()).toBe('deleted');

    await panel(page).getByRole('combobox', { name: 'Changes of' }).selectOption({ index: 1 });
    await diffOf(page, 'main.ts').getByText('let changed = 1;').waitFor();
    expect(await file(page, '/w/gone.txt').count()).toBe(0);
    // The address names the turn.
    await page.reload();
    await diffOf(page, 'main.ts').getByText('let changed = 1;').waitFor();
  });

  it('are shown in one column or two, in colours, with unchanged lines folded', async () => {
    const { page } = await rig.open({ viewport: { width: 1700, height: 900 } });
    await newSession(page);
    await edit(
      page,
      [{ path: '/w/a.ts', before: lines(100), after: lines(100, { 50: 'const other = "text";' }) }],
      'Done.',
    );
    await openChanges(page);
    const diff = diffOf(page, 'a.ts');
    await diff.getByText('… 46 unchanged lines').waitFor();
    await diff.locator('.cell.added .token-keyword').getByText('const').waitFor();
    const shown = await diff.locator('.cell').count();
    expect(shown).toBe(8);
    await diff.getByRole('button', { name: 'Last 20' }).first().click();
    await diff.getByText('… 26 unchanged lines').waitFor();
    expect(await diff.locator('.cell').count()).toBe(28);
    await diff
      .getByRole('button', { name: /Show all/ })
      .first()
      .click();
    await diff.getByRole('button', { name: /Show all/ }).click();
    expect(await diff.locator('.cell').count()).toBe(101);

    await page.getByText('Side by side').click();
    const [old, now] = [diff.locator('.cell.removed'), diff.locator('.cell.added')];
    const [a, b] = [(await old.boundingBox())!, (await now.boundingBox())!];
    expect(a.y).toBe(b.y);
    expect(b.x).toBeGreaterThan(a.x);
    await page.reload();
    await diff.locator('.cell.removed').waitFor();
    expect(await page.getByRole('radio', { name: 'Side by side' }).isChecked()).toBe(true);
  });

  it('show names and texts as text', async () => {
    const { page } = await rig.open();
    const evil = '<img src=x onerror="document.title=1">';
    await newSession(page);
    await edit(page, [{ path: `/w/${evil}\u202e.ts`, before: `${evil}\n`, after: `<script>${evil}\u202e\n` }], 'Done.');
    await openChanges(page);
    await panel(page).getByText('<script>').waitFor();
    expect(await panel(page).innerText()).toContain('\\u202e');
    expect(await panel(page).locator('img, script').count()).toBe(0);
    expect(await page.title()).not.toBe('1');
    await conversation(page)
      .getByText(/^edit$/i)
      .first()
      .waitFor();
  });

  it('of long files are drawn a part at a time', async () => {
    const { page } = await rig.open();
    await newSession(page);
    await edit(page, [{ path: '/w/long.txt', after: lines(1_500) }], 'Done.');
    await openChanges(page);
    await file(page, '/w/long.txt')
      .getByRole('button', { name: /long\.txt/ })
      .click();
    const diff = diffOf(page, 'long.txt');
    await diff.getByText('let line1 = 1;').waitFor();
    expect(await diff.locator('.line').count()).toBe(400);
    await diff.getByRole('button', { name: 'Show 400 more rows' }).click();
    expect(await diff.locator('.line').count()).toBe(800);
  });
});

describe('comments on lines', () => {
  const before = lines(30);
  const after = lines(30, { 10: 'let ten = 10;', 11: 'let eleven = 11;' });

  it('are collected, edited, removed, looked at and sent to the agent as one prompt', async () => {
    const { page } = await rig.open();
    await newSession(page);
    await edit(
      page,
      [
        { path: '/w/a.rs', before, after },
        { path: '/w/b.rs', before: 'old\n', after: 'new\n' },
      ],
      'Done.',
    );
    await openChanges(page);
    const diff = diffOf(page, 'a.rs');
    // A range: the second line with Shift.
    const added = diff.locator('.cell.added').getByRole('button');
    await added.nth(0).click();
    // The field moves away below the pointer, which selects no further lines.
    await added.nth(1).click({ modifiers: ['Shift'] });
    await page.mouse.move(2, 2);
    await page.getByRole('textbox', { name: 'Comment on lines 10 to 11' }).fill('Why <b>two</b>?');
    await page.getByRole('button', { name: 'Add comment' }).click();
    await diff.getByText('Why <b>two</b>?').waitFor();
    await panel(page).getByText('1 comment', { exact: true }).waitFor();
    // By dragging over the numbers, which is given up.
    const numbers = diff.locator('.cell.same').getByRole('button');
    await numbers.nth(0).hover();
    await page.mouse.down();
    await numbers.nth(2).hover();
    await page.mouse.up();
    await page.getByRole('textbox', { name: 'Comment on lines 7 to 9' }).press('Escape');
    // With the keyboard, on the line that was removed.
    await diffOf(page, 'b.rs').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('c');
    await page.keyboard.type('Keep this.');
    await page.keyboard.press('Control+Enter');
    await panel(page).getByText('2 comments', { exact: true }).waitFor();
    // They survive a reload.
    await page.reload();
    await diff.getByText('Why <b>two</b>?').waitFor();
    const note = diff.getByRole('article', { name: 'Comment on lines 10 to 11' });
    await note.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('textbox', { name: 'Comment on lines 10 to 11' }).fill('Why two?');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await note.getByText('Why two?').waitFor();
    await diff.locator('.cell.same').first().getByRole('button').click();
    await page.keyboard.type('Not this one');
    await page.keyboard.press('Control+Enter');
    await panel(page).getByText('3 comments', { exact: true }).waitFor();
    await diff.getByRole('article').filter({ hasText: 'Not this one' }).getByRole('button', { name: 'Remove' }).click();

    await page.getByRole('button', { name: 'Review and send' }).click();
    const dialog = page.getByRole('dialog');
    const text = await dialog.locator('pre').innerText();
    expect(text).toBe(
      'Please address these 2 comments on your changes:\n\n' +
        '1. `/w/a.rs`, lines 10–11:\n\n```\nlet ten = 10;\nlet eleven = 11;\n```\n\nWhy two?\n\n' +
        '2. `/w/b.rs`, line 1 (before the change):\n\n```\nold\n```\n\nKeep this.',
    );
    await dialog.getByRole('button', { name: 'Send' }).click();
    const sent = conversation(page).getByRole('article').last();
    await sent.getByText('Keep this.').waitFor();
    // The host has the message as the agent gets it.
    await sent.getByRole('button', { name: /allow/i }).first().click();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    const id = decodeURIComponent(page.url()).match(/session:\/([^?&]+)/)![1]!;
    const shown = rig.host.grove('show', id, '--json');
    expect(shown).toContain('Keep this.');
    expect(shown).toContain('lines 10–11');
    // Nothing is left to send.
    expect(await page.getByRole('button', { name: 'Review and send' }).count()).toBe(0);
    expect(
      await page.evaluate(() => Object.keys(sessionStorage).filter((key) => key.startsWith('grove-comments'))),
    ).toEqual([]);
  });

  it('reach an agent that is working as a queued prompt', async () => {
    const { page } = await rig.open();
    await newSession(page);
    await edit(page, [{ path: '/w/a.rs', before, after }], 'Done.');
    const box = page.getByRole('textbox', { name: 'Prompt' });
    await box.fill(script([{ say: 'Waiting.' }, { hang: true }]));
    await box.press('Enter');
    await page.getByRole('button', { name: 'Stop' }).waitFor();
    await openChanges(page);
    await diffOf(page, 'a.rs').locator('.cell.removed').first().getByRole('button').click();
    await page.keyboard.type('Later.');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('button', { name: 'Review and send' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Queue' }).click();
    await page.getByRole('list', { name: 'Queued prompts' }).getByText('Later.').waitFor();
  });
});
