import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  answers,
  choose,
  conversation,
  dataFolder,
  type Host,
  newSession,
  openWindow,
  portOf,
  prompt,
  script,
  startBrowser,
  startHost,
  type Window,
  WITHOUT_HOST,
} from './support';

const AGENT = fileURLToPath(new URL('acp-agent.mjs', import.meta.url));
const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

let browser: Browser;
let data: ReturnType<typeof dataFolder>;
let host: Host;
let windows: Window[];

beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
});
beforeEach(async () => {
  windows = [];
  data = dataFolder();
  mkdirSync(join(data.home, 'src'));
  writeFileSync(join(data.home, 'src', 'main.rs'), 'fn main() {}\n');
  const settings = `[agents.echo]\ncommand = ${JSON.stringify([process.execPath, AGENT])}\nname = "Echo"\n`;
  host = await startHost(data.path, 0, [], settings);
});
afterEach(async () => {
  await Promise.all(windows.map((window) => window.close()));
  await host?.kill();
  data?.remove();
});

async function open(address = host.link, options = {}): Promise<Window> {
  const window = await openWindow(browser, options);
  windows.push(window);
  await window.page.goto(address);
  return window;
}

/** Opens the newest session in another window. */
async function follow(options = {}): Promise<Window> {
  const window = await open(host.link, options);
  await window.page.getByRole('navigation', { name: 'Sessions' }).getByRole('link').first().click();
  await box(window.page).waitFor();
  return window;
}

/** Starts a session with the agent that says what it received. */
async function echoSession(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'New session' }).first().click();
  await page.getByRole('radio', { name: /Echo/ }).check();
  await page.getByRole('button', { name: 'Start session' }).click();
  await box(page).waitFor();
}

const box = (page: Page): Locator => page.getByRole('textbox', { name: 'Prompt' });
const idle = (page: Page): Promise<void> => page.getByRole('button', { name: 'Send', exact: true }).waitFor();
const card = (page: Page): Locator => page.getByRole('group', { name: 'Permission request' });
const queue = (page: Page): Locator => page.getByRole('list', { name: 'Queued prompts' }).getByRole('listitem');
/** The time after which a card takes keys. */
const settled = (page: Page): Promise<void> => page.waitForTimeout(700);

async function say(page: Page, text: string): Promise<void> {
  await prompt(page, script([{ say: text }]));
  await answers(page).getByText(text, { exact: true }).waitFor();
  await idle(page);
}

/** Checks that no window had errors, except the expected ones. */
function expectQuiet(expected: RegExp = /^$/): void {
  expect(windows.flatMap((window) => window.problems).filter((problem) => !expected.test(problem))).toEqual([]);
}

describe('a permission request', () => {
  const asks = (...names: string[]): string =>
    script([
      ...names.map((name) => ({ tool: { name: 'shell', input: name, output: `ran ${name}`, permission: 'shell' } })),
      { say: 'That was it.' },
    ]);

  it('is answered by keys in one window, and both windows show who did', async () => {
    const one = await open();
    await newSession(one.page);
    const two = await follow();
    await prompt(one.page, asks('make all', 'make test'));
    await card(one.page).getByText('make all', { exact: true }).first().waitFor();
    await settled(one.page);
    // The prompt still has the focus: a letter is typed there.
    await one.page.keyboard.type('y');
    expect(await box(one.page).inputValue()).toBe('y');
    await one.page.keyboard.press('Backspace');
    await one.page.keyboard.press('Escape');
    await one.page.keyboard.press('y');
    await card(two.page).getByText('make test', { exact: true }).first().waitFor();
    await settled(two.page);
    await two.page.getByRole('main').focus();
    await two.page.keyboard.press('n');
    await answers(one.page).getByText('That was it.').waitFor();
    await answers(two.page).getByText('That was it.').waitFor();
    for (const { page } of [one, two]) {
      const calls = conversation(page).getByRole('group', { name: 'Tool shell' });
      await calls.nth(0).getByText('approved by host').waitFor();
      await calls.nth(1).getByText('Denied').waitFor();
    }
    expectQuiet();
  });

  it('is answered with a rule, which `a` shows with its places and as it is stored', async () => {
    const { page } = await open();
    await newSession(page);
    await prompt(page, asks('make all', 'make all'));
    await card(page).waitFor();
    await settled(page);
    await page.keyboard.press('Escape');
    await page.keyboard.press('a');
    const rules = page.getByRole('form', { name: 'Allow by a rule' });
    await rules.getByRole('radio', { name: 'In this session' }).waitFor();
    expect(await rules.getByRole('radio', { name: 'Everywhere' }).count()).toBe(1);
    await rules.getByText('command = "make all"').waitFor();
    await expect
      .poll(() =>
        rules
          .getByRole('radio')
          .first()
          .evaluate((radio) => radio === document.activeElement),
      )
      .toBe(true);
    await page.keyboard.press('Enter');
    // The second call needs no answer.
    await answers(page).getByText('That was it.').waitFor();
    await page.getByRole('button', { name: '1 remembered answer' }).waitFor();
    expectQuiet();
  });

  it('is denied with a reason that the agent receives in the running turn', async () => {
    const { page } = await open();
    await newSession(page);
    await prompt(page, asks('rm -rf build'));
    await card(page).waitFor();
    await settled(page);
    await page.keyboard.press('Escape');
    await page.keyboard.press('N');
    await page.keyboard.type('Use make clean instead');
    await page.keyboard.press('Enter');
    await answers(page).getByText('You say: Use make clean instead').waitFor();
    await answers(page).getByText('That was it.').waitFor();
    const tool = conversation(page).getByRole('group', { name: 'Tool shell' });
    await tool.locator('summary').first().click();
    await tool.getByText('Use make clean instead').waitFor();
    expectQuiet();
  });

  it('of an agent over ACP is denied with a reason that comes with the answer and as its next message', async () => {
    const { page } = await open();
    await echoSession(page);
    await prompt(page, 'run rm -rf build');
    await card(page).getByRole('button', { name: 'Deny and say why' }).click();
    await page.keyboard.type('Use make clean');
    await page.getByRole('button', { name: 'Deny and send' }).click();
    await answers(page).first().getByText('outcome: never, because: Use make clean').waitFor();
    await answers(page).last().getByText('text: Use make clean').waitFor();
    expectQuiet();
  });

  it('is answered on a phone, where everything fits', async () => {
    const { page } = await open(host.link, { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true });
    await newSession(page);
    const long = `make ${'very-long-target-name/'.repeat(12)}all`;
    await prompt(page, asks(long));
    await card(page).getByText(long, { exact: true }).first().waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    const allow = card(page).getByRole('button', { name: 'Allow', exact: true });
    expect((await allow.boundingBox())!.height).toBeGreaterThanOrEqual(44);
    await allow.tap();
    await answers(page).getByText('That was it.').waitFor();
    expectQuiet();
  });

  it('fits on a phone in German, with everything that can be done beside it', async () => {
    const { page } = await open(host.link, { viewport: { width: 390, height: 780 } });
    await newSession(page);
    await page.evaluate(() => localStorage.setItem('grove-language', 'de'));
    await page.reload();
    await box(page).waitFor();
    await prompt(page, asks('make all'));
    await page.getByRole('group', { name: 'Anfrage um Erlaubnis' }).waitFor();
    await box(page).fill('und dann');
    for (const name of [
      'Anhalten',
      'Jetzt senden',
      'Einreihen',
      'Mit einer Regel erlauben …',
      'Ablehnen mit Grund …',
    ]) {
      const place = (await page.getByRole('button', { name, exact: true }).boundingBox())!;
      expect([name, place.x >= 0 && place.x + place.width <= 390]).toEqual([name, true]);
    }
    expectQuiet();
  });

  it('shows names and options of an agent as text, whatever they contain', async () => {
    const { page } = await open();
    await newSession(page);
    const hostile = '<img src=x onerror="document.title=1"><script>alert(1)</script>';
    const turned = 'rm \u202egnp.exe';
    const options = [
      { id: 'a', label: `${hostile} yes`, allows: true },
      { id: 'b', label: `${turned} no`, allows: false },
    ];
    const tool = { name: hostile, input: `${turned} ${hostile}`, output: hostile, permission: 'shell', options };
    const question = {
      message: hostile,
      questions: [
        {
          id: 'q',
          title: null,
          message: hostile,
          required: true,
          kind: {
            one: { freeform: false, options: [{ id: 'x', label: hostile, description: hostile, recommended: true }] },
          },
        },
      ],
    };
    await prompt(page, script([{ tool }, { ask: question }, { say: 'Survived.' }]));
    await card(page).getByRole('button', { name: '<img src=x' }).waitFor();
    await card(page).getByRole('button', { name: 'rm \\u202egnp.exe no' }).waitFor();
    expect(await page.locator('img[src=x], .permission script').count()).toBe(0);
    await card(page).getByRole('button', { name: '<img src=x' }).click();
    await page.getByRole('button', { name: 'Answer' }).click();
    await answers(page).getByText('Survived.').waitFor();
    expect(await page.title()).not.toBe('1');
    expectQuiet();
  });
});

describe('a question', () => {
  it('is answered with the keyboard alone', async () => {
    const { page } = await open();
    await newSession(page);
    const options = ['Red', 'Blue'].map((label) => ({ id: label, label, description: null, recommended: false }));
    const questions = [
      { id: 'q', title: null, message: 'Which?', required: true, kind: { one: { freeform: false, options } } },
    ];
    await prompt(page, script([{ ask: { message: 'Before we begin', questions } }, { say: 'Noted.' }]));
    await page.getByRole('group', { name: 'Question' }).getByText('Which?').waitFor();
    await settled(page);
    await page.keyboard.press('Escape');
    await page.keyboard.press('2');
    await page.keyboard.press('Enter');
    await answers(page).getByText('Noted.').waitFor();
    await page.getByRole('group', { name: 'Question' }).getByText('Blue').waitFor();
    expectQuiet();
  });
});

describe('the prompt', () => {
  it('has pictures that are pasted and files that are picked, and the agent receives them', async () => {
    const { page } = await open();
    await echoSession(page);
    await box(page).fill('What is this?');
    await box(page).evaluate((field, picture) => {
      const bytes = Uint8Array.from(atob(picture), (byte) => byte.charCodeAt(0));
      const clipboard = new DataTransfer();
      clipboard.items.add(new File([bytes], 'image.png', { type: 'image/png' }));
      field.dispatchEvent(new ClipboardEvent('paste', { clipboardData: clipboard, bubbles: true, cancelable: true }));
    }, PICTURE);
    const attached = page.getByRole('form').or(page.locator('form')).getByRole('list', { name: 'Attachments' }).last();
    await attached.getByText('Pasted image').waitFor();
    await page.locator('input[type=file]').setInputFiles([
      { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('twelve bytes') },
      { name: 'wrong.txt', mimeType: 'text/plain', buffer: Buffer.from('not this one, please') },
    ]);
    await attached.getByRole('button', { name: 'Remove wrong.txt' }).click();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await answers(page).getByText('text: What is this?').waitFor();
    await answers(page)
      .getByText(`image: image/png, ${Buffer.from(PICTURE, 'base64').length} bytes`)
      .waitFor();
    await answers(page).getByText('embedded: text/plain, 12 characters').waitFor();
    expect(
      await answers(page)
        .getByText(/embedded/)
        .count(),
    ).toBe(1);
    expect(await page.locator('form').getByRole('list', { name: 'Attachments' }).count()).toBe(0);
    expectQuiet();
  });

  it('makes an attachment of a long text that is pasted, and of a file that is dropped', async () => {
    const { page } = await open();
    await echoSession(page);
    const transfer = (kind: 'paste' | 'drop'): Promise<void> =>
      box(page).evaluate((field, kind) => {
        const clipboard = new DataTransfer();
        if (kind === 'paste') {
          clipboard.setData('text/plain', 'a line\n'.repeat(150));
          field.dispatchEvent(
            new ClipboardEvent('paste', { clipboardData: clipboard, bubbles: true, cancelable: true }),
          );
        } else {
          clipboard.items.add(new File(['dropped'], 'dropped.md', { type: 'text/markdown' }));
          field.dispatchEvent(new DragEvent('drop', { dataTransfer: clipboard, bubbles: true, cancelable: true }));
        }
      }, kind);
    await transfer('paste');
    await page.getByText('Pasted text, 151 lines').waitFor();
    await transfer('drop');
    await page.getByText('dropped.md', { exact: true }).waitFor();
    await box(page).fill('Read this');
    await box(page).press('Enter');
    await answers(page).getByText('embedded: text/plain, 1050 characters').waitFor();
    await answers(page).getByText('embedded: text/markdown, 7 characters').waitFor();
    expectQuiet();
  });

  it('completes files and commands by keys', async () => {
    const { page } = await open();
    await echoSession(page);
    await box(page).pressSequentially('look at @s');
    await page.getByRole('option', { name: '@src/', exact: true }).waitFor();
    await page.keyboard.press('Tab');
    await page.getByRole('option', { name: '@src/main.rs' }).waitFor();
    await page.keyboard.press('Enter');
    expect(await box(page).inputValue()).toBe('look at @src/main.rs ');
    await page.keyboard.press('Enter');
    await answers(page)
      .getByText(/link: main\.rs file:.*\/src\/main\.rs|embedded: .*characters/)
      .waitFor();
    await idle(page);

    await box(page).pressSequentially('/re');
    const commands = page.getByRole('listbox', { name: 'Commands' }).getByRole('option');
    await commands.first().waitFor();
    expect(await commands.count()).toBe(2);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    expect(await box(page).inputValue()).toBe('/review ');
    await page.getByText('/review a branch').waitFor();
    expectQuiet();
  });

  it('shows the agent and its settings, which can be changed there', async () => {
    const { page } = await open();
    await echoSession(page);
    const settings = page.getByRole('group', { name: 'Settings' });
    await settings.getByText('Echo').waitFor();
    await settings.getByRole('combobox').selectOption('Write code');
    await prompt(page, 'mode');
    await answers(page).getByText('mode: code').waitFor();
    expectQuiet();
  });

  it('has several lines, and earlier prompts with ArrowUp', async () => {
    const { page } = await open();
    await echoSession(page);
    for (const text of ['first', 'second']) {
      await prompt(page, text);
      await answers(page).getByText(`text: ${text}`).waitFor();
      await idle(page);
    }
    await box(page).press('ArrowUp');
    expect(await box(page).inputValue()).toBe('second');
    await box(page).press('ArrowUp');
    expect(await box(page).inputValue()).toBe('first');
    await box(page).press('ArrowDown');
    await box(page).press('ArrowDown');
    expect(await box(page).inputValue()).toBe('');
    await box(page).pressSequentially('mine');
    await box(page).press('ArrowUp');
    expect(await box(page).inputValue()).toBe('mine');
    await box(page).press('Shift+Enter');
    await box(page).pressSequentially('two lines');
    expect(await box(page).inputValue()).toMatch(/\n/);
    expectQuiet();
  });
});

describe('a draft', () => {
  it('that is typed in one browser is in another one, and is merged with what is typed there', async () => {
    const one = await open();
    await newSession(one.page);
    const two = await follow();
    await box(one.page).pressSequentially('make it green');
    await expect.poll(() => box(two.page).inputValue(), { timeout: 10_000 }).toBe('make it green');
    await box(two.page).press('End');
    await box(two.page).pressSequentially(' and fast');
    await expect.poll(() => box(one.page).inputValue(), { timeout: 10_000 }).toBe('make it green and fast');
    // What is sent from one is no draft of the other any more, once it is not being typed there.
    await two.page.waitForTimeout(1_600);
    await box(one.page).fill(script([{ say: 'Sent.' }]));
    await box(one.page).press('Enter');
    await answers(two.page).getByText('Sent.').waitFor();
    await expect.poll(() => box(two.page).inputValue(), { timeout: 10_000 }).toBe('');
    expectQuiet();
  });

  it('survives a lost connection, a reload, and the other browser', async () => {
    const one = await open();
    await newSession(one.page);
    await box(one.page).pressSequentially('before');
    const two = await follow();
    await expect.poll(() => box(two.page).inputValue(), { timeout: 10_000 }).toBe('before');
    const port = portOf(host);
    await host.kill();
    await one.page.getByText('The connection to the host is interrupted').waitFor();
    await box(one.page).press('End');
    await box(one.page).pressSequentially(' and after');
    await one.page.waitForTimeout(4_000);
    host = await startHost(data.path, port);
    await expect.poll(() => box(two.page).inputValue(), { timeout: 40_000 }).toBe('before and after');
    expect(await box(one.page).inputValue()).toBe('before and after');
    await one.page.reload();
    await box(one.page).waitFor();
    await expect.poll(() => box(one.page).inputValue(), { timeout: 10_000 }).toBe('before and after');
    expectQuiet(WITHOUT_HOST);
  });
});

describe('a draft on the host', () => {
  it('is there after a restart, for a browser that is opened then', async () => {
    const one = await open();
    await newSession(one.page);
    await say(one.page, 'Here.');
    await box(one.page).fill('kept on the host');
    await one.page.getByRole('main').focus();
    await one.page.waitForTimeout(500);
    await one.close();
    await host.stop();
    host = await startHost(data.path);
    const two = await follow();
    await expect.poll(() => box(two.page).inputValue(), { timeout: 10_000 }).toBe('kept on the host');
    expectQuiet(WITHOUT_HOST);
  });
});

describe('the queue', () => {
  it('is edited, reordered by keys and by dragging, and given to the running turn, while both windows see it', async () => {
    const one = await open();
    await newSession(one.page);
    const two = await follow();
    await prompt(
      one.page,
      script([{ say: 'I wait.' }, { tool: { name: 'wait', output: '', permission: 'shell' } }, { say: 'Over.' }]),
    );
    await card(one.page).waitFor();
    for (const text of ['one', 'two', 'three']) await prompt(one.page, script([{ say: `It was ${text}.` }]));
    const order = async (page: Page): Promise<string> =>
      (await queue(page).allInnerTexts()).map((text) => /one|two|three|four/.exec(text)?.[0]).join(' ');
    await expect.poll(() => order(two.page)).toBe('one two three');
    await queue(one.page).nth(2).focus();
    await one.page.keyboard.press('Alt+ArrowUp');
    await expect.poll(() => order(two.page)).toBe('one three two');
    // The focus moves with the prompt.
    await expect
      .poll(() =>
        queue(one.page)
          .nth(1)
          .evaluate((item) => item === document.activeElement),
      )
      .toBe(true);
    await one.page.keyboard.press('Alt+ArrowUp');
    await expect.poll(() => order(two.page)).toBe('three one two');
    await queue(two.page)
      .nth(2)
      .dragTo(queue(two.page).nth(0), { targetPosition: { x: 40, y: 6 } });
    await expect.poll(() => order(one.page)).toBe('two three one');

    await queue(two.page).nth(1).getByRole('button', { name: 'Edit the queued prompt' }).click();
    await two.page.getByRole('textbox', { name: 'Edit the queued prompt' }).fill(script([{ say: 'It was four.' }]));
    await two.page.keyboard.press('Enter');
    await expect.poll(() => order(one.page)).toBe('two four one');
    await queue(one.page).nth(0).getByRole('button', { name: 'Remove from the queue' }).click();
    await expect.poll(() => order(one.page)).toBe('four one');
    await queue(one.page).nth(1).getByRole('button', { name: 'Send now' }).click();
    await expect.poll(() => order(two.page)).toBe('four');
    await card(one.page).getByRole('button', { name: 'Allow', exact: true }).click();
    await answers(two.page).getByText('It was one.').waitFor();
    await answers(two.page).getByText('It was four.', { exact: true }).waitFor();
    expect(await conversation(two.page).getByRole('article').count()).toBe(2);
    expect(await conversation(two.page).innerText()).not.toContain('It was two.');
    expectQuiet();
  });
});

describe('a turn', () => {
  it('is stopped and tried again with the same message', async () => {
    const { page } = await open();
    await newSession(page);
    await prompt(page, script([{ say: 'I wait.' }, { hang: true }]));
    await answers(page).getByText('I wait.').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await answers(page).getByText('Stopped').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await answers(page).nth(1).getByText('I wait.').waitFor();
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Stop' }).click();
    await answers(page).nth(1).getByText('Stopped').waitFor();
    await prompt(page, script([{ fail: 'out of ideas' }]));
    await answers(page).nth(2).getByText('out of ideas').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await answers(page).nth(3).getByText('out of ideas').waitFor();
    expectQuiet();
  });

  it('is copied as it was written', async () => {
    const { page } = await open(host.link, { permissions: ['clipboard-read', 'clipboard-write'] });
    await newSession(page);
    await say(page, 'An *answer*.'.replaceAll('*', ''));
    await conversation(page).getByRole('article').hover();
    await page.getByRole('button', { name: 'Copy the answer' }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe('An answer.');
    await page.getByRole('button', { name: 'Copy the prompt' }).click();
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toContain('script:');
    expectQuiet();
  });
});

describe('a message', () => {
  it('is edited and sent on a branch of its own, and every version can be seen again', async () => {
    const one = await open();
    await newSession(one.page);
    const two = await follow();
    const { page } = one;
    await say(page, 'Beginning.');
    await say(page, 'First version.');
    await say(page, 'After the first.');
    await box(page).fill('half a thought');
    const article = conversation(page).getByRole('article').nth(1);
    await article.hover();
    await article.getByRole('button', { name: 'Edit the message' }).click();
    await expect.poll(() => box(page).inputValue()).toContain('First version.');
    await box(page).fill(script([{ say: 'Second version.' }]));
    await box(page).press('Enter');
    for (const shown of [page, two.page]) {
      await answers(shown).getByText('Second version.', { exact: true }).waitFor();
      await idle(shown);
      await expect.poll(() => conversation(shown).innerText()).not.toContain('First version.');
      expect(await conversation(shown).getByRole('article').count()).toBe(2);
    }
    expect(await box(page).inputValue()).toBe('half a thought');

    const versions = (shown: Page, at: number, count: number): Locator =>
      conversation(shown).getByRole('group', { name: `Version ${at} of ${count}` });
    await versions(page, 2, 2).getByRole('button', { name: 'Previous version' }).click();
    for (const shown of [page, two.page]) {
      await answers(shown).getByText('After the first.', { exact: true }).waitFor();
      expect(await conversation(shown).getByRole('article').count()).toBe(3);
      await versions(shown, 1, 2).waitFor();
      expect(await conversation(shown).innerText()).not.toContain('Second version.');
    }
    await versions(two.page, 1, 2).getByRole('button', { name: 'Next version' }).click();
    for (const shown of [page, two.page]) {
      await answers(shown).getByText('Second version.', { exact: true }).waitFor();
      await versions(shown, 2, 2).waitFor();
    }
    // A third version, of the first message.
    const first = conversation(page).getByRole('article').first();
    await first.hover();
    await first.getByRole('button', { name: 'Edit the message' }).click();
    await box(page).press('Escape');
    expect(await box(page).inputValue()).toBe('half a thought');
    await first.getByRole('button', { name: 'Edit the message' }).click();
    await box(page).fill(script([{ say: 'Another beginning.' }]));
    await box(page).press('Enter');
    await answers(two.page).getByText('Another beginning.', { exact: true }).waitFor();
    await versions(two.page, 2, 2).waitFor();
    expect(await conversation(two.page).getByRole('article').count()).toBe(1);
    expectQuiet();
  });

  it('with attachments is edited with them', async () => {
    const { page } = await open();
    await echoSession(page);
    await page
      .locator('input[type=file]')
      .setInputFiles([{ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('twelve bytes') }]);
    await page.getByRole('button', { name: 'Remove notes.txt' }).waitFor();
    await prompt(page, 'Read it');
    await answers(page).getByText('embedded: text/plain, 12 characters').waitFor();
    await idle(page);
    await conversation(page).getByRole('article').hover();
    await page.getByRole('button', { name: 'Edit the message' }).click();
    await page.getByRole('button', { name: 'Remove notes.txt' }).waitFor();
    await box(page).fill('Read it twice');
    await box(page).press('Enter');
    await answers(page).getByText('text: Read it twice').waitFor();
    await answers(page).getByText('embedded: text/plain, 12 characters').waitFor();
    expectQuiet();
  });
});

describe('the chats of a session', () => {
  it('are tabs: opened, named, answered from elsewhere, and closed, in both windows', async () => {
    const one = await open();
    await newSession(one.page);
    const two = await follow();
    const { page } = one;
    await say(page, 'In the main chat.');
    expect(await page.getByRole('tab').count()).toBe(0);
    await choose(page, 'New chat');
    await page.getByRole('tab', { name: 'Chat 2', selected: true }).waitFor();
    await page.getByText('There are no messages yet.').waitFor();
    await page.getByRole('button', { name: 'Rename this chat' }).click();
    await page.getByRole('textbox', { name: 'Title of the chat' }).fill('Aside');
    await page.keyboard.press('Enter');
    await two.page.getByRole('tab', { name: 'Aside' }).waitFor();
    await prompt(
      page,
      script([{ tool: { name: 'deploy', output: '', permission: 'shell' } }, { say: 'In the side chat.' }]),
    );
    await card(page).waitFor();
    // The other window shows the main chat, and what the side chat asks.
    await two.page.getByRole('region', { name: 'Pending requests' }).getByText('In Aside:').waitFor();
    await two.page.getByRole('tab', { name: /Aside.*Needs you/ }).waitFor();
    await card(two.page).getByRole('button', { name: 'Allow', exact: true }).click();
    await answers(page).getByText('In the side chat.').waitFor();
    expect(await answers(two.page).innerText()).not.toContain('In the side chat.');

    await page.reload();
    await page.getByRole('tab', { name: 'Aside', selected: true }).waitFor();
    await answers(page).getByText('In the side chat.').waitFor();
    await page.getByRole('tab', { name: 'Aside' }).press('ArrowLeft');
    await page.getByRole('tab', { name: 'Main chat', selected: true }).waitFor();
    await answers(page).getByText('In the main chat.').waitFor();
    await two.page.getByRole('tab', { name: 'Aside' }).click();
    await answers(two.page).getByText('In the side chat.').waitFor();
    await two.page.getByRole('button', { name: 'Close this chat' }).click();
    await two.page.getByRole('dialog').getByRole('button', { name: 'Close this chat' }).click();
    await answers(two.page).getByText('In the main chat.').waitFor();
    await vi.waitFor(async () => expect(await page.getByRole('tab').count()).toBe(0), 10_000);
    expectQuiet();
  });
});

describe('the menu of a session', () => {
  it('forks it, and tells how it is exported', async () => {
    const { page } = await open();
    await newSession(page);
    await say(page, 'Here.');
    await choose(page, 'Export …');
    await page
      .getByRole('dialog')
      .getByText(/^grove export '[0-9a-z-]+' --format markdown$/)
      .waitFor();
    await page.keyboard.press('Escape');
    await choose(page, 'Fork the session');
    await page.getByRole('heading', { name: /\(fork\)$/ }).waitFor();
    await answers(page).getByText('Here.').waitFor();
    await choose(page, 'Compact the conversation');
    await page.getByText('The conversation was not compacted').waitFor();
    expectQuiet();
  });

  it('is operated with the keyboard', async () => {
    const { page } = await open();
    await newSession(page);
    await page.getByRole('button', { name: 'More actions' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('menuitem', { name: 'Rename the session' }).waitFor();
    await page.keyboard.press('End');
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.textContent?.trim()))
      .toBe('Delete the session');
    await page.keyboard.press('Escape');
    await page.getByRole('menu').waitFor({ state: 'detached' });
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    await page.getByRole('textbox', { name: 'Title of the session' }).fill('By keys');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'By keys' }).waitFor();
    expectQuiet();
  });
});
