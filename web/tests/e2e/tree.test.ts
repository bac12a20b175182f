import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { goTo, here, openTree, promptRow, row, rows, say, session, tree, untilRows, useRig } from './panels';
import { answers, conversation, prompt, script } from './support';

const rig = useRig();
const promptBox = 'textarea#prompt';

/** A log with so many messages, a new branch after every hundredth. */
function bigLog(count: number): string {
  const at = (n: number): string => new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString();
  const lines: object[] = [{ type: 'session', version: 3, id: 'big', timestamp: at(0), cwd: '/' }];
  for (let n = 0; n < count; n++) {
    const message =
      n % 2 === 0
        ? { role: 'user', content: `message ${n}.`, timestamp: Date.parse(at(n)) }
        : { role: 'assistant', content: [{ type: 'text', text: `message ${n}.` }], stopReason: 'stop' };
    const parent = n === 0 ? null : n % 100 === 0 ? `e${n - 50}` : `e${n - 1}`;
    lines.push({ type: 'message', id: `e${n}`, parentId: parent, timestamp: at(n), message });
  }
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

describe('the tree', () => {
  it('shows the entries of each filter and of a search, and always the current position', async () => {
    const { page } = await rig.open();
    await session(page, ['one', 'two']);
    await openTree(page);
    const filter = page.getByRole('combobox', { name: 'Shown entries' });
    // A prompt, the answer with its call, the result, and the end of the answer.
    await untilRows(page, (texts) => texts.length === 8);
    expect(await here(page).innerText()).toContain('Answer two.');
    await filter.selectOption({ label: 'Without tools' });
    await untilRows(page, (texts) => texts.length === 6 && !texts.some((text) => text.startsWith('look')));
    await filter.selectOption({ label: 'My messages' });
    // The current position stays: it is the nearest row above the leaf.
    await untilRows(page, (texts) => texts.length === 2 && texts.every((text) => text.startsWith('You')));
    expect(await here(page).innerText()).toContain('About two');
    await filter.selectOption({ label: 'Everything' });
    await untilRows(page, (texts) => texts.length > 8);
    await filter.selectOption({ label: 'Conversation' });
    await untilRows(page, (texts) => texts.length === 8);

    await tree(page).press('s');
    await page.keyboard.type('one.txt look');
    // The words of a row in any order: the prompt, the answer with the call, the result, and the current position.
    await untilRows(page, (texts) => texts.length === 4 && texts[2]!.includes('output of one'));
    await page.keyboard.press('Escape');
    await untilRows(page, (texts) => texts.length === 8);
  });

  it('labels an entry, and changes and deletes the label', async () => {
    const { page } = await rig.open();
    await session(page, ['one']);
    await openTree(page);
    const filter = page.getByRole('combobox', { name: 'Shown entries' });
    await row(page, 'Answer one.').click();
    await page.keyboard.press('l');
    await page.keyboard.type('good');
    await page.keyboard.press('Enter');
    await row(page, 'Answer one.').locator('.label').getByText('good', { exact: true }).waitFor();
    await filter.selectOption({ label: 'With a label' });
    await untilRows(page, (texts) => texts.length === 1 && texts[0]!.includes('good'));
    await filter.selectOption({ label: 'Conversation' });
    await untilRows(page, (texts) => texts.length === 4);
    // Escape keeps the label, an empty one deletes it.
    await row(page, 'Answer one.').click();
    await page.keyboard.press('l');
    await page.keyboard.type('other');
    await page.keyboard.press('Escape');
    expect(await row(page, 'Answer one.').locator('.label').innerText()).toBe('good');
    await page.keyboard.press('l');
    await page.keyboard.press('Backspace');
    await page.keyboard.press('Enter');
    await expect.poll(() => tree(page).locator('.label').count()).toBe(0);
  });

  it('grows while the chat does, and is used with the keyboard alone', async () => {
    const { page } = await rig.open();
    await session(page, ['one', 'two']);
    await openTree(page);
    await untilRows(page, (texts) => texts.length === 8);
    await say(page, [{ say: 'Answer three.' }], 'Answer three.');
    await untilRows(page, (texts) => texts.length === 10);
    await tree(page).focus();
    await page.keyboard.press('Home');
    for (let n = 0; n < 4; n++) await page.keyboard.press('ArrowDown');
    expect(await tree(page).locator('[aria-selected=true]').innerText()).toContain('About two.');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Enter');
    // The text of the message is in the prompt, and the conversation ends before it.
    await expect.poll(() => page.locator(promptBox).inputValue()).toContain('About two.');
    await expect.poll(() => conversation(page).getByRole('article').count()).toBe(1);
    await prompt(page, script([{ say: 'Another way.' }]));
    await answers(page).getByText('Another way.').waitFor();
    await untilRows(page, (texts) => texts.length === 12);
    expect(await page.getByRole('button', { name: 'Show the tree, 2 branches' }).innerText()).toContain('2');

    // Branches fold, and are found.
    await tree(page).focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('b');
    expect(await tree(page).locator('[aria-selected=true]').innerText()).toContain('Another way.');
    await page.keyboard.press('b');
    await page.keyboard.press('f');
    await untilRows(page, (texts) => texts.length === 7 && texts[6]!.includes('5 entries folded'));
    await page.keyboard.press('ArrowRight');
    await untilRows(page, (texts) => texts.length === 12);
    await page.keyboard.press('Escape');
    await tree(page).waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.textContent)).toContain('Show the tree');
  });

  it('keeps its width, which the keyboard changes too', async () => {
    const { page } = await rig.open();
    await session(page, ['one']);
    await openTree(page);
    const panel = page.getByRole('complementary', { name: 'Tree' });
    const before = (await panel.boundingBox())!.width;
    await page.getByRole('separator').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    expect((await panel.boundingBox())!.width).toBe(before - 64);
    await page.reload();
    await rows(page).first().waitFor();
    expect((await panel.boundingBox())!.width).toBe(before - 64);
  });

  it('of 10,000 entries with branches draws only the rows in view, and finds entries in all of them', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'grove-log-')), 'events.jsonl');
    writeFileSync(path, bigLog(10_000));
    rig.host.grove('import', path, '--cwd', tmpdir(), '--agent', 'scripted');
    rmSync(dirname(path), { recursive: true });
    const { page } = await rig.open();
    await page.getByRole('navigation', { name: 'Sessions' }).getByRole('link').first().click();
    await openTree(page);
    await page.getByText('10000 entries').waitFor();
    // Away from the end, where the current position is.
    await tree(page).focus();
    await page.keyboard.press('Home');
    await row(page, 'message 0.').waitFor();
    expect(await rows(page).count()).toBeLessThan(60);
    await page.keyboard.press('End');
    await tree(page).locator('#tree-row-9999').waitFor();
    await page.getByRole('searchbox', { name: 'Search the tree' }).fill('message 7777.');
    await row(page, 'message 7777.').waitFor();
  });

  it('is a full sheet on a phone, and shows texts as texts', async () => {
    const { page } = await rig.open({ viewport: { width: 390, height: 780 } });
    const evil = '<img src=x onerror="document.title=1"><b>bold</b>';
    await session(page, [evil]);
    await openTree(page);
    const panel = page.getByRole('complementary', { name: 'Tree' });
    expect(await panel.boundingBox()).toEqual({ x: 0, y: 0, width: 390, height: 780 });
    await row(page, 'Answer').last().click();
    await page.getByRole('button', { name: 'Label' }).click();
    await page.getByRole('textbox', { name: 'Label of this entry' }).fill(`${evil}\u202e`);
    await page.keyboard.press('Enter');
    await tree(page).locator('.label').waitFor();
    expect(await tree(page).locator('.label').innerText()).toContain('<b>bold</b>\\u202e');
    expect(await panel.locator('img, b').count()).toBe(0);
    expect(await page.title()).not.toBe('1');
    await page.getByRole('button', { name: 'Close' }).click();
    await panel.waitFor({ state: 'detached' });
  });
});

describe('going somewhere else', () => {
  it('attaches a summary made with instructions', async () => {
    const { page } = await rig.open();
    await session(page, ['one', 'two']);
    await openTree(page);
    await goTo(page, row(page, 'Answer one.'), 'Summarize it with instructions', script([{ say: 'It was tried.' }]));
    await row(page, 'It was tried.').waitFor();
    expect(await here(page).innerText()).toContain('It was tried.');
    expect(await conversation(page).getByRole('article').count()).toBeGreaterThan(0);
    // Without instructions the agent's own summary.
    await goTo(page, row(page, 'Answer two.'), 'Summarize the branch that I leave');
    await untilRows(page, (texts) => texts.filter((text) => text.startsWith('Summary')).length === 2);
    await expect.poll(async () => await here(page).innerText()).toContain('The person said');
  });

  it('is cancelled with Escape while a summary is made, and nothing changes', async () => {
    const { page } = await rig.open();
    await session(page, ['one', 'two']);
    await openTree(page);
    await untilRows(page, (texts) => texts.length === 8);
    await goTo(page, row(page, 'Answer one.'), 'Summarize it with instructions', script([{ hang: true }]));
    const progress = page.getByRole('status').filter({ hasText: 'Escape cancels it' });
    await progress.waitFor();
    // From anywhere on the page.
    await page.locator(promptBox).focus();
    await page.keyboard.press('Escape');
    await page.getByText('The summary was cancelled. Nothing has changed.').waitFor();
    await progress.waitFor({ state: 'detached' });
    expect(await rows(page).count()).toBe(8);
    expect(await here(page).innerText()).toContain('Answer two.');
    expect(await conversation(page).getByRole('article').count()).toBe(2);
  });

  it('makes a session from before a message, and a fork with every branch', async () => {
    const { page } = await rig.open();
    await session(page, ['one', 'two']);
    await openTree(page);
    await promptRow(page, 'About two.').click();
    const first = page.url();
    await page.getByRole('button', { name: 'New session from here' }).click();
    await expect.poll(() => page.url()).not.toBe(first);
    await expect.poll(() => page.locator(promptBox).inputValue()).toContain('About two.');
    await expect.poll(() => conversation(page).getByRole('article').count()).toBe(1);

    await page.goto(first);
    await rows(page).first().waitFor();
    await page.getByRole('button', { name: 'Fork the session' }).click();
    await page.getByRole('heading', { name: 'A tree (fork)' }).waitFor();
    await expect.poll(() => conversation(page).getByRole('article').count()).toBe(2);
    await openTree(page);
    await untilRows(page, (texts) => texts.length === 8);
  });

  it('merges another branch back, and compacts', async () => {
    const { page } = await rig.open();
    await session(page, ['one', 'two']);
    await openTree(page);
    await goTo(page, row(page, 'Answer one.'));
    await expect.poll(async () => await here(page).innerText()).toContain('Answer one.');
    await say(page, [{ say: 'Another way.' }], 'Another way.');
    await untilRows(page, (texts) => texts.length === 10);
    await row(page, 'Answer two.').click();
    await page.getByRole('button', { name: 'Merge into this branch' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox').fill(script([{ say: 'Two was good.' }]));
    await dialog.getByRole('button', { name: 'Merge into this branch' }).click();
    await row(page, 'Two was good.').waitFor();
    await expect.poll(async () => await here(page).innerText()).toContain('Two was good.');

    // A short conversation is not compacted, and the reason is shown.
    await page.getByRole('button', { name: 'Compact' }).click();
    await dialog.getByRole('button', { name: 'Compact' }).click();
    await page.getByText(/^Compact: /).waitFor();
    const long = { name: 'read', output: 'word '.repeat(10), repeat: 1_200 };
    await say(page, [{ tool: long }, { tool: long }, { say: 'Long.' }], 'Long.');
    await say(page, [{ say: 'After it.' }], 'After it.');
    await page.getByRole('button', { name: 'Compact' }).click();
    await dialog.getByRole('textbox').fill(script([{ say: 'In short.' }]));
    await dialog.getByRole('button', { name: 'Compact' }).click();
    await row(page, 'In short.').waitFor();
  });
});

describe('two branches', () => {
  it('are compared side by side, and on a phone one after the other', async () => {
    const { page } = await rig.open();
    await session(page, ['one', 'two']);
    await openTree(page);
    await goTo(page, row(page, 'Answer one.'));
    await expect.poll(async () => await here(page).innerText()).toContain('Answer one.');
    const edits = [{ path: '/w/<b>three</b>.rs', before: 'a\n', after: 'b\n' }];
    await say(page, [{ tool: { name: 'edit', output: 'ok', edits } }, { say: 'Answer three.' }], 'Answer three.');
    await row(page, 'Answer two.').click();
    await page.keyboard.press('c');
    await page.getByText('Compare “Answer two.” with').waitFor();
    await row(page, 'Answer three.').click();
    await page.keyboard.press('Enter');
    const left = page.getByRole('region', { name: 'First branch' });
    const right = page.getByRole('region', { name: 'Second branch' });
    await left.getByText('About two.').last().waitFor();
    expect(await right.innerText()).toContain('Answer three.');
    // The files that each changed.
    await left.getByText('No file was changed.').waitFor();
    expect(await right.locator('li.only').first().innerText()).toMatch(/\/w\/<b>three<\/b>\.rs\s*\+1\s*−1\s*only here/);
    // What both have in common is not there.
    expect(await left.innerText()).not.toContain('Answer one.');
    // Words of one side alone are marked.
    const marks = await left.locator('mark, .other').allInnerTexts();
    expect(marks.join(' ')).toContain('two');
    const [a, b] = [await left.locator('article').boundingBox(), await right.locator('article').boundingBox()];
    expect(a!.y).toBe(b!.y);
    expect(b!.x).toBeGreaterThan(a!.x);
    await page.setViewportSize({ width: 390, height: 780 });
    const [c, d] = [await left.locator('article').boundingBox(), await right.locator('article').boundingBox()];
    expect(c!.x).toBe(d!.x);
    expect(d!.y).toBeGreaterThan(c!.y);
    await page.keyboard.press('Escape');
    await left.waitFor({ state: 'detached' });
    // Only the comparison is closed.
    expect(await tree(page).count()).toBe(1);
  });
});
