import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  answers,
  choose,
  conversation,
  dataFolder,
  type Host,
  type Impostor,
  newSession,
  openWindow,
  passOn,
  portOf,
  prompt,
  script,
  startBrowser,
  startHost,
  startImpostor,
  type Window,
  WITHOUT_HOST,
} from './support';

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
  host = await startHost(data.path);
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

/** Checks that no window had errors, except the expected ones. */
function expectQuiet(expected: RegExp = /^$/): void {
  expect(windows.flatMap((window) => window.problems).filter((problem) => !expected.test(problem))).toEqual([]);
}

describe('getting in', () => {
  it('with a link leaves no token in the address', async () => {
    const { page } = await open();
    await page.getByRole('navigation', { name: 'Sessions' }).waitFor();
    await page.getByText('There are no sessions yet.').waitFor();
    expect(page.url()).toBe(`${host.address}/`);
    expect(await page.evaluate(() => JSON.stringify([...Object.entries(localStorage)]) + document.cookie)).toBe('[]');
    await page.reload();
    await page.getByText('There are no sessions yet.').waitFor();
    expectQuiet();
  });

  it('without a token is told how to get one, and can paste it', async () => {
    const { page } = await open(host.address);
    await page.getByText('grove open').waitFor();
    await page.getByLabel('Or paste the token here').fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'did not prove that it knows this token' }).waitFor();
    await page.getByLabel('Or paste the token here').fill(host.token);
    await page.keyboard.press('Enter');
    await page.getByText('There are no sessions yet.').waitFor();
    expectQuiet();
  });

  it('runs no text that a script turns into markup', async () => {
    const { page } = await open();
    await page.getByRole('heading').first().waitFor();
    const written = page.evaluate(() => {
      document.body.innerHTML = '<img src=x onerror=alert(1)>';
    });
    await expect(written).rejects.toThrow(/TrustedHTML/);
  });

  it('with a code of `grove open` works once, and gives the page a token that can be revoked', async () => {
    const link = host.grove('open', '--print');
    expect(link).toMatch(/#code=gc[0-9a-f]{80}$/);
    const { page } = await open(link);
    await page.getByText('There are no sessions yet.').waitFor();
    expect(new URL(page.url()).hash).toBe('');
    await page.reload();
    await page.getByText('There are no sessions yet.').waitFor();
    const { page: late } = await open(link);
    await late.getByText('good once, for a minute').waitFor();
    const name = /browser-[0-9a-f]+/.exec(host.grove('token', 'ls'))?.[0] ?? '';
    host.grove('token', 'revoke', name);
    await page.reload();
    await page.getByRole('alert').getByText('revoked').waitFor();
  });

  it('stores and sends no token, and a reload needs none', async () => {
    const { page } = await openWindow(browser);
    const sent: string[] = [];
    page.on('request', (request) => sent.push(request.url(), JSON.stringify(request.headers())));
    page.on('websocket', (socket) => sent.push(socket.url()));
    await page.goto(host.link);
    await page.getByText('There are no sessions yet.').waitFor();
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain(host.token);
    await page.reload();
    await page.getByText('There are no sessions yet.').waitFor();
    expect(sent.some((text) => text.includes('/proof?nonce='))).toBe(true);
    // A browser never sends the fragment.
    expect(sent.filter((text) => text.includes(host.token) && !text.includes('#token='))).toEqual([]);
    await page.context().close();
  });
});

describe('a session', () => {
  it('goes from the first run to a streamed answer with a permission', async () => {
    const { page } = await open();
    await newSession(page);
    await prompt(page, 'Show me what you can do');
    const log = conversation(page);
    await log.getByText('Show me what you can do').waitFor();
    // It streams: the beginning is visible before the end.
    await log.getByText('Hello! I am the scripted agent').waitFor();
    const tool = log.getByRole('group', { name: 'Tool shell' });
    await tool.getByText('ls', { exact: true }).waitFor();
    await tool.getByRole('button', { name: /allow/i }).first().click();
    await log.getByText('That is all I can do by myself.').waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();

    await tool.locator('summary').click();
    await tool.getByText('README.md').waitFor();
    await log.getByText('Thoughts').click();
    await log.locator('.thoughts').getByText('No model is behind me').waitFor();
    // The agent named the session after the prompt.
    await page.getByRole('heading', { name: 'Show me what you can do' }).waitFor();
    await page.getByRole('navigation').getByText('Show me what you can do').waitFor();
    expectQuiet();
  });

  it('says in its header what it does, before, while and after it waits for a permission', async () => {
    const { page } = await open();
    await newSession(page);
    const header = page.getByRole('main').locator('header');
    const shows = (status: string): Promise<void> => header.getByText(status, { exact: true }).waitFor();
    await shows('Idle');
    for (const choice of [/allow/i, /deny|reject/i]) {
      await prompt(
        page,
        script([{ tool: { name: 'make', output: 'ok', permission: 'shell' } }, { say: 'That was it.' }]),
      );
      await shows('Needs you');
      await conversation(page).getByRole('button', { name: choice }).first().click();
      await answers(page).last().getByText('That was it.').waitFor();
      await page.getByRole('button', { name: 'Send' }).waitFor();
      await shows('Idle');
    }
    await page.getByRole('navigation', { name: 'Sessions' }).getByText('Idle').waitFor({ state: 'attached' });
    expectQuiet();
  });

  it('goes on without a tool that was denied', async () => {
    const { page } = await open();
    await newSession(page);
    await prompt(page, script([{ tool: { name: 'rm', output: 'gone', permission: 'shell' } }, { say: 'Then not.' }]));
    const tool = conversation(page).getByRole('group', { name: 'Tool rm' });
    await tool
      .getByRole('button', { name: /deny|reject/i })
      .first()
      .click();
    await tool.getByText('Denied').waitFor();
    await answers(page).getByText('Then not.').waitFor();
    expectQuiet();
  });

  it('is created only in a folder that is there, and the person sees why not', async () => {
    const { page } = await open();
    mkdirSync(join(data.home, 'my project'));
    writeFileSync(join(data.home, 'a-file'), '');
    await page.getByRole('button', { name: 'New session' }).first().click();
    await page.getByRole('radio', { name: /Scripted/ }).check();
    const field = page.getByRole('textbox', { name: /directory/i });
    for (const [typed, why] of [
      ['relative/path', 'is not an absolute path'],
      ['~/nowhere', 'There is no folder ~/nowhere on the host’s machine.'],
      [`${data.home}/nowhere/at/all`, 'There is no folder'],
      ['~/a-file', 'is a file, not a folder'],
      ['~you/x', 'is not an absolute path'],
    ] as const) {
      await field.fill(typed);
      await page.getByRole('button', { name: 'Start session' }).click();
      await page.getByRole('alert').filter({ hasText: why }).waitFor();
    }
    await page.getByText('There are no sessions yet.').waitFor();
    await field.fill('~/my project');
    await page.getByRole('button', { name: 'Start session' }).click();
    await page.getByRole('textbox', { name: 'Prompt' }).waitFor();
    await page.getByRole('main').getByText('my project').first().waitFor();
    expectQuiet();
  });

  it('lists what is allowed for all times, and asks again when that is revoked', async () => {
    const { page } = await open();
    await newSession(page);
    const options = [
      { id: 'always', label: 'Always allow', allows: true, lasting: true },
      { id: 'no', label: 'Deny', allows: false, lasting: false },
    ];
    const steps = [{ tool: { name: 'make', input: 'make', output: 'ok', permission: 'shell', options } }];
    await prompt(page, script([...steps, { say: 'Once.' }]));
    await conversation(page).getByRole('button', { name: 'Always allow', exact: true }).click();
    await answers(page).getByText('Once.').waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await prompt(page, script([...steps, { say: 'Twice.' }]));
    await answers(page).getByText('Twice.').waitFor();

    await page.getByRole('button', { name: '1 remembered answer' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('make', { exact: true }).waitFor();
    await dialog.getByRole('button', { name: 'Ask again for everything' }).click();
    await page.getByRole('button', { name: '1 remembered answer' }).waitFor({ state: 'detached' });
    await prompt(page, script([...steps, { say: 'Thrice.' }]));
    await conversation(page).getByRole('button', { name: 'Always allow', exact: true }).click();
    await answers(page).getByText('Thrice.').waitFor();
    expectQuiet();
  });

  it('asks a question and gets an answer', async () => {
    const { page } = await open();
    await newSession(page);
    await prompt(page, script([{ ask: 'Which colour?' }, { say: 'A good choice.' }]));
    const question = conversation(page).getByRole('group', { name: 'Question' });
    await question.getByText('Which colour?').first().waitFor();
    const field = question.getByRole('textbox');
    if ((await field.count()) > 0) await field.fill('green');
    await question.getByRole('button', { name: /Answer|Continue/ }).click();
    await answers(page).getByText('A good choice.').waitFor();
    await question.getByText('Answered').waitFor();
    expectQuiet();
  });

  it('shows what a tool did when it failed, and why a turn failed', async () => {
    const { page } = await open();
    await newSession(page);
    await prompt(
      page,
      script([{ tool: { name: 'make', output: 'no rule', success: false } }, { fail: 'out of ideas' }]),
    );
    const log = conversation(page);
    await log.getByRole('group', { name: 'Tool make' }).getByText('no rule').waitFor();
    await log.getByRole('group', { name: 'Error' }).getByText('out of ideas').waitFor();
    expectQuiet();
  });

  it('stops when told to, and takes the queued prompt next', async () => {
    const { page } = await open();
    await newSession(page);
    await prompt(page, script([{ say: 'I wait.' }, { hang: true }]));
    await answers(page).getByText('I wait.').waitFor();
    await prompt(page, script([{ say: 'It was my turn.' }]));
    await page.getByRole('list', { name: 'Queued prompts' }).getByText('It was my turn').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await answers(page).getByText('Stopped').waitFor();
    await answers(page).getByText('It was my turn.').waitFor();
    expectQuiet();
  });

  it('is listed however many sessions other tools left', async () => {
    const projects = join(data.path, '.claude', 'projects', '-w');
    mkdirSync(projects, { recursive: true });
    for (let number = 0; number < 120; number++) {
      const line = {
        type: 'user',
        uuid: `u${number}`,
        parentUuid: null,
        sessionId: `h${number}`,
        cwd: '/w',
        version: '2.1.0',
        isSidechain: false,
        timestamp: '2099-01-02T03:04:05.000Z',
        message: { role: 'user', content: 'hello' },
      };
      writeFileSync(join(projects, `h${number}.jsonl`), `${JSON.stringify(line)}\n`);
    }
    await host.stop();
    host = await startHost(data.path);
    const { page } = await open();
    await newSession(page);
    await prompt(page, script([{ say: 'Here.' }]));
    await answers(page).getByText('Here.').waitFor();
    await page.reload();
    const list = page.getByRole('navigation', { name: 'Sessions' });
    await list.getByRole('link').first().waitFor();
    expect(await list.getByText('There are no sessions yet.').count()).toBe(0);
    expectQuiet();
  });

  it('is renamed, archived, and deleted only after a question', async () => {
    const { page } = await open();
    await newSession(page);
    await prompt(page, script([{ say: 'Here.' }]));
    await answers(page).getByText('Here.').waitFor();
    await page.getByRole('button', { name: 'Rename the session' }).click();
    await page.getByRole('textbox', { name: 'Title of the session' }).fill('My own title');
    await page.keyboard.press('Enter');
    const list = page.getByRole('navigation', { name: 'Sessions' });
    await list.getByRole('link', { name: /My own title/ }).waitFor();

    await choose(page, 'Archive');
    await list.getByText('All sessions are archived.').waitFor();
    await list.getByRole('button', { name: 'Archived' }).click();
    await list.getByRole('link', { name: /My own title/ }).waitFor();

    await choose(page, 'Delete the session');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await list.getByRole('link', { name: /My own title/ }).waitFor();
    await choose(page, 'Delete the session');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await list.getByRole('link', { name: /My own title/ }).waitFor({ state: 'detached' });
    expectQuiet();
  });

  it('can be used on a phone and with the keyboard alone', async () => {
    const { page } = await open(host.link, { viewport: { width: 390, height: 780 } });
    await page.getByRole('button', { name: 'New session' }).first().focus();
    await page.keyboard.press('Enter');
    await page.getByRole('radio', { name: /Scripted/ }).focus();
    await page.keyboard.press('Enter');
    // A closing dialog restores the focus: only then can it be moved.
    await page.getByRole('radio', { name: /Scripted/ }).waitFor({ state: 'hidden' });
    const box = page.getByRole('textbox', { name: 'Prompt' });
    await vi.waitFor(async () => {
      await box.fill('');
      await box.focus();
      await page.keyboard.type('Two lines,');
      expect(await box.inputValue()).toBe('Two lines,');
    }, 10_000);
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('one prompt');
    await page.keyboard.press('Enter');
    await conversation(page).getByText('Two lines, one prompt').waitFor();
    await conversation(page).getByRole('button', { name: /allow/i }).first().waitFor();
    await conversation(page).getByRole('button', { name: /allow/i }).first().focus();
    await page.keyboard.press('Enter');
    await answers(page).getByText('That is all I can do by myself.').waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await page.getByRole('button', { name: 'Back to the sessions' }).click();
    await page
      .getByRole('navigation', { name: 'Sessions' })
      .getByRole('link', { name: /Two lines/ })
      .waitFor();
    expectQuiet();
  });
});

describe('two browsers', () => {
  it('are in step: what one does the other sees, and either answers', async () => {
    const one = await open();
    const two = await open();
    await newSession(one.page);
    await two.page.getByRole('navigation', { name: 'Sessions' }).getByRole('link').first().click();
    await prompt(
      one.page,
      script([
        { say: 'Slowly I say what I have to say.', chunks: 8, delayMs: 40 },
        { tool: { name: 'deploy', output: 'done', permission: 'shell' } },
        { say: 'Deployed.' },
      ]),
    );
    await answers(two.page).getByText('Slowly I say what I have to say.').waitFor();
    // Each sees that the other one is here.
    for (const { page } of [one, two]) {
      await page
        .getByRole('list', { name: 'Also here' })
        .getByText('host (Grove’s page)')
        .waitFor({ state: 'attached' });
    }
    // The second one allows the request of the first one.
    const tool = conversation(two.page).getByRole('group', { name: 'Tool deploy' });
    await tool.getByRole('button', { name: /allow/i }).first().click();
    await answers(one.page).getByText('Deployed.').waitFor();
    await answers(two.page).getByText('Deployed.').waitFor();
    await one.page.getByRole('button', { name: 'Send' }).waitFor();
    await two.page.getByRole('button', { name: 'Send' }).waitFor();
    const said = (window: Window): Promise<string> => conversation(window.page).innerText();
    expect(await said(two)).toBe(await said(one));
    expect(await said(one)).toContain('approved by host (Grove’s page)');

    await choose(one.page, 'Delete the session');
    await one.page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await two.page.getByText('Cannot show this session: it was deleted').waitFor();
    expectQuiet();
  });
});

describe('another program on the port of a host that is down', () => {
  const IMPOSTOR = 'Another program answers at this address';

  /** Opens a session, ends the host, and starts a program on its port. */
  async function replaceHost(answer: Parameters<typeof startImpostor>[1]): Promise<{ window: Window; fake: Impostor }> {
    const window = await open();
    await newSession(window.page);
    await prompt(window.page, script([{ say: 'Before.' }]));
    await answers(window.page).getByText('Before.').waitFor();
    await window.page.getByRole('button', { name: 'Send' }).waitFor();
    const port = portOf(host);
    await host.kill();
    return { window, fake: await startImpostor(port, answer) };
  }

  /** It received nonces and nothing else: no token, no key, no answer to a challenge, no socket. */
  async function expectNothingSaid({ page }: Window, fake: Impostor): Promise<void> {
    const key = await page.evaluate(() => sessionStorage.getItem('grove.pageKey'));
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(fake.heard.length).toBeGreaterThan(0);
    for (const { method, url, rest } of fake.heard) {
      expect(`${method} ${url}`).toMatch(/^POST \/proof\?nonce=[0-9a-f]{64}$/);
      expect(rest).not.toContain(host.token);
      expect(rest).not.toContain(key!);
      expect(rest).not.toContain('Sent while away');
    }
  }

  it('gets nothing, and the page goes on with the host when that is back', async () => {
    const guess = JSON.stringify({ proof: '0'.repeat(64), challenge: 'A'.repeat(43) });
    const { window, fake } = await replaceHost(() => Promise.resolve({ status: 200, body: guess }));
    const { page } = window;
    await page.getByText(IMPOSTOR).waitFor();
    await prompt(page, script([{ say: 'Sent while away.' }]));
    await fake.until(3);
    await expectNothingSaid(window, fake);
    await fake.close();
    host = await startHost(data.path, fake.port);
    await answers(page).getByText('Sent while away.').waitFor({ timeout: 40_000 });
    await page.getByText(IMPOSTOR).waitFor({ state: 'detached' });
  });

  it('that asks the real host elsewhere for the proof gets nothing either', async () => {
    let asked = 0;
    // In turn with the name of the real host, and with the page's name for it.
    const { window, fake } = await replaceHost((url, headers) =>
      passOn(host, url, asked++ % 2 === 0 ? {} : { host: headers['host'], origin: headers['origin'] }),
    );
    host = await startHost(data.path, 0);
    await window.page.getByText(IMPOSTOR).waitFor();
    await fake.until(4);
    expect(fake.answered).toContain(200);
    expect(fake.answered).toContain(403);
    await expectNothingSaid(window, fake);
    await fake.close();
  });

  it('is not the host, and another token can be entered', async () => {
    const { window, fake } = await replaceHost(() => Promise.resolve({ status: 404, body: 'nothing here' }));
    await window.page.getByText(IMPOSTOR).waitFor();
    await window.page.getByRole('button', { name: 'Enter another token' }).click();
    await window.page.getByLabel('Or paste the token here').waitFor();
    expect(await window.page.evaluate(() => sessionStorage.length)).toBe(0);
    await fake.close();
  });
});

describe('a host that is killed and started again', () => {
  const lines = Array.from({ length: 200 }, (_, n) => `word${n}`);

  it('in the middle of a stream loses nothing that was seen', async () => {
    const { page, problems } = await open();
    await newSession(page);
    await prompt(page, script([{ say: 'Before.' }]));
    await answers(page).getByText('Before.').waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await prompt(page, script([{ say: lines.join(' '), chunks: 200, delayMs: 30 }]));
    await answers(page).getByText('word40').waitFor();
    const port = portOf(host);
    await host.kill();
    const answer = answers(page).last();
    const seen = (await answer.locator('.prose').innerText()).trim();
    await page.getByText('The connection to the host is interrupted').waitFor();
    expect(seen).toContain('word40');
    expect(seen).not.toContain('word199');

    host = await startHost(data.path, port);
    await page.getByText('The connection to the host is interrupted').waitFor({ state: 'detached', timeout: 40_000 });
    // The turn has ended, with everything that was seen of it.
    await page.getByRole('button', { name: 'Send' }).waitFor();
    expect((await answer.locator('.prose').innerText()).trim().startsWith(seen)).toBe(true);
    expect(await answers(page).first().innerText()).toContain('Before.');
    await prompt(page, script([{ say: 'Back again.' }]));
    await answers(page).getByText('Back again.').waitFor();
    expect(await conversation(page).getByRole('article').count()).toBe(3);
    expect(problems.filter((problem) => !WITHOUT_HOST.test(problem))).toEqual([]);

    // A page that is opened now sees the same.
    const fresh = await open();
    await fresh.page.getByRole('navigation', { name: 'Sessions' }).getByRole('link').first().click();
    await answers(fresh.page).getByText('Back again.').waitFor();
    expect(await conversation(fresh.page).innerText()).toBe(await conversation(page).innerText());
  });

  it('while it waits for a permission still waits', async () => {
    const { page, problems } = await open();
    await newSession(page);
    await prompt(page, script([{ tool: { name: 'deploy', output: 'ok', permission: 'shell' } }, { say: 'Deployed.' }]));
    const tool = conversation(page).getByRole('group', { name: 'Tool deploy' });
    await tool.getByRole('button', { name: /allow/i }).first().waitFor();
    const port = portOf(host);
    await host.kill();
    await page.getByText('The connection to the host is interrupted').waitFor();
    host = await startHost(data.path, port);
    await page.getByText('The connection to the host is interrupted').waitFor({ state: 'detached', timeout: 40_000 });
    await tool.getByRole('button', { name: /allow/i }).first().click();
    await answers(page).getByText('Deployed.').waitFor();
    expect(problems.filter((problem) => !WITHOUT_HOST.test(problem))).toEqual([]);
  });

  it('gets the prompt that was sent while it was away', async () => {
    const { page, problems } = await open();
    await newSession(page);
    await prompt(page, script([{ say: 'Before.' }]));
    await answers(page).getByText('Before.').waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    const port = portOf(host);
    await host.kill();
    await page.getByText('The connection to the host is interrupted').waitFor();
    await prompt(page, script([{ say: 'Heard you.' }]));
    await conversation(page).getByText('Sending …').waitFor();
    host = await startHost(data.path, port);
    await answers(page).getByText('Heard you.').waitFor({ timeout: 40_000 });
    expect(await conversation(page).getByRole('article').count()).toBe(2);
    expect(problems.filter((problem) => !WITHOUT_HOST.test(problem))).toEqual([]);
  });
});
