import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { importLong } from './long';
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

async function open(options = {}): Promise<Window> {
  const window = await openWindow(browser, options);
  windows.push(window);
  await window.page.goto(host.link);
  return window;
}

function expectQuiet(): void {
  expect(windows.flatMap((window) => window.problems)).toEqual([]);
}

/** Opens the only session of the host. */
async function openSession(page: Page): Promise<void> {
  await page.getByRole('navigation', { name: 'Sessions' }).getByRole('link').first().click();
}

async function idle(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Send' }).waitFor();
}

const shownTurns = (page: Page): Promise<string[]> =>
  conversation(page).locator('article .prompt .text').allInnerTexts();

/** Scrolls by the wheel until a text is drawn. */
async function wheelUntil(page: Page, text: string, by: number): Promise<void> {
  await conversation(page).hover();
  const wanted = conversation(page).getByText(text, { exact: true });
  for (let step = 0; step < 900 && (await wanted.count()) === 0; step++) {
    await page.mouse.wheel(0, by);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  }
  await wanted.waitFor();
}

describe('a long session', () => {
  it('opens at its end and is scrolled to its first turn and back without a button, with few turns drawn', async () => {
    importLong(host, data.home, 400, (n) => `Answer ${n}.\n\n${'Some more words. '.repeat((n * 7) % 50)}`);
    const { page } = await open();
    await openSession(page);
    await answers(page).getByText('Answer 399.').waitFor();
    expect(await conversation(page).getByText('Answer 0.').count()).toBe(0);
    // The end is at the lower edge.
    const box = await conversation(page).locator('article').last().boundingBox();
    const view = await conversation(page).boundingBox();
    expect(box!.y + box!.height).toBeLessThanOrEqual(view!.y + view!.height + 1);
    expect(await page.getByRole('button', { name: /earlier/i }).count()).toBe(0);

    let most = 0;
    await wheelUntil(page, 'Question 200?', -900);
    most = Math.max(most, (await shownTurns(page)).length);
    await wheelUntil(page, 'Question 0?', -1_800);
    most = Math.max(most, (await shownTurns(page)).length);
    const turns = (await shownTurns(page)).map((text) => Number(/\d+/.exec(text)![0]));
    expect(turns).toEqual(turns.map((_, n) => n));
    expect(most).toBeLessThan(40);
    await page.getByRole('button', { name: 'To the end' }).click();
    await answers(page).getByText('Answer 399.').waitFor();
    expect((await shownTurns(page)).length).toBeLessThan(40);
    expectQuiet();
  });

  it('moves by what the reader scrolls, while heights become known and earlier turns are loaded', async () => {
    importLong(host, data.home, 600, (n) => {
      const code = n % 7 === 0 ? '\n\n```rust\nfn main() {}\n```' : '';
      return `Answer ${n}.\n\n${'Some words. '.repeat(n % 60)}${code}`;
    });
    const { page } = await open();
    await openSession(page);
    await answers(page).getByText('Answer 599.').waitFor();
    const wrong = await page.evaluate(async () => {
      const view = document.querySelector<HTMLElement>('[role=log]')!;
      const frame = (): Promise<unknown> => new Promise((resolve) => requestAnimationFrame(resolve));
      const places = (): Map<string, number> => {
        const turns = [...view.querySelectorAll<HTMLElement>('article')];
        return new Map(turns.map((turn) => [turn.dataset['turn']!, turn.getBoundingClientRect().top]));
      };
      const found: number[] = [];
      for (let step = 0; step < 120; step++) {
        // At the very beginning, the reader waits for what is loaded.
        if (view.scrollTop < 600) {
          await frame();
          continue;
        }
        const before = places();
        view.scrollTop -= 600;
        await frame();
        await frame();
        for (const [turn, top] of places()) {
          const moved = top - (before.get(turn) ?? NaN);
          if (top > -100 && top < 1_200 && Math.abs(moved - 600) > 2) found.push(moved);
        }
      }
      return found;
    });
    expect(wrong).toEqual([]);
    expectQuiet();
  });

  it('stays where it is while earlier turns are loaded above, and while an answer streams below', async () => {
    importLong(host, data.home, 200, (n) => `Answer ${n}.`);
    const { page } = await open();
    await openSession(page);
    await answers(page).getByText('Answer 199.').waitFor();
    await wheelUntil(page, 'Question 150?', -700);
    const place = (): Promise<number> =>
      page.evaluate(() => {
        const turns = [...document.querySelectorAll('article')];
        return turns.find((turn) => turn.textContent?.includes('Question 150?'))!.getBoundingClientRect().top;
      });
    await conversation(page).getByText('Question 150?').scrollIntoViewIfNeeded();
    await page.waitForTimeout(300);
    const before = await place();
    await prompt(page, script([{ say: 'word '.repeat(300), chunks: 100, delayMs: 5 }]));
    // A prompt of one's own leads to the end; scrolling away from there holds.
    await answers(page).last().getByText('word word').waitFor();
    await wheelUntil(page, 'Question 150?', -700);
    await conversation(page).getByText('Question 150?').scrollIntoViewIfNeeded();
    await page.waitForTimeout(100);
    const held = await place();
    await page.waitForTimeout(400);
    expect(Math.abs((await place()) - held)).toBeLessThan(2);
    expect(before).toBeGreaterThan(0);
    expectQuiet();
  });

  it('has a rail of prompts, and an address that leads to a turn', async () => {
    importLong(host, data.home, 150, (n) => `Answer ${n}.`);
    const { page } = await open();
    await openSession(page);
    await answers(page).getByText('Answer 149.').waitFor();
    const rail = page.getByRole('navigation', { name: 'Prompts' });
    // The marks are others once earlier turns are loaded.
    const label = (await rail.getByRole('button').first().getAttribute('aria-label'))!;
    await rail.getByRole('button', { name: label, exact: true }).focus();
    await page.keyboard.press('Enter');
    await conversation(page).getByText(label.replace('Prompt: ', ''), { exact: true }).waitFor();

    await wheelUntil(page, 'Question 20?', -900);
    const far = conversation(page).locator('article', { hasText: 'Question 20?' });
    const id = await far.getAttribute('data-turn');
    const session = page.url();
    // The page is opened again, so that only the newest turns are loaded.
    await page.goto('about:blank');
    await page.goto(`${session}?turn=${encodeURIComponent(id!)}`);
    await far.and(conversation(page).locator('[aria-current]')).waitFor();
    const top = (await far.boundingBox())!.y - (await conversation(page).boundingBox())!.y;
    expect(top).toBeGreaterThanOrEqual(0);
    expect(top).toBeLessThan(60);
    await page.goto(`${session}?turn=nowhere`);
    await page.getByText('This turn is not on the current branch').waitFor();
    expectQuiet();
  });

  it('is searched, in loaded turns at once and in earlier ones on request', async () => {
    importLong(host, data.home, 180, (n) => (n % 60 === 7 ? 'Here is the **needle** in it.' : `Answer ${n}.`));
    const { page } = await open();
    await openSession(page);
    await answers(page).getByText('Answer 179.').waitFor();
    await page.locator('body').click({ position: { x: 700, y: 300 } });
    await page.keyboard.press('/');
    const search = page.getByRole('search', { name: 'Find in the session' });
    await page.keyboard.type('the needle');
    await search.getByText('1 of 1').waitFor();
    await conversation(page).getByText('Question 127?').waitFor();
    const marks = (): Promise<number[]> =>
      page.evaluate(() => ['grove-find', 'grove-find-current'].map((name) => CSS.highlights.get(name)?.size ?? 0));
    await expect.poll(marks).toEqual([1, 1]);
    await search.getByRole('button', { name: 'Search earlier turns' }).click();
    await search.getByText('1 of 3').waitFor();
    await search.getByRole('searchbox').press('Enter');
    await search.getByText('2 of 3').waitFor();
    await conversation(page).getByText('Question 67?').waitFor();
    await search.getByRole('searchbox').press('Shift+Enter');
    await search.getByText('1 of 3').waitFor();
    await page.keyboard.press('Escape');
    await search.waitFor({ state: 'detached' });
    expect(await marks()).toEqual([0, 0]);
    await page.keyboard.press('Control+f');
    await search.waitFor();
    expectQuiet();
  });
});

describe('a very long answer', () => {
  it('is drawn near to the view alone, while it streams and after, and is searched as a whole', async () => {
    const { page } = await open();
    await newSession(page);
    const paragraphs = Array.from(
      { length: 1_500 },
      (_, n) => `Paragraph ${n} ${n === 700 ? 'with the needle' : ''} ends.`,
    );
    await prompt(page, script([{ say: paragraphs.join('\n\n'), chunks: 300 }]));
    await answers(page).getByText('Paragraph 1499').waitFor();
    await idle(page);
    const drawn = (): Promise<number> => answers(page).locator('.prose p').count();
    await expect.poll(drawn).toBeLessThan(400);
    // The reader goes back through all of it, and nothing is missing on the way.
    await conversation(page).hover();
    const seen = new Set<string>();
    for (let step = 0; step < 400 && !seen.has('Paragraph 0  ends.'); step++) {
      await page.mouse.wheel(0, -600);
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      for (const text of await answers(page).locator('.prose p').allTextContents()) seen.add(text);
    }
    expect(paragraphs.filter((text) => !seen.has(text))).toEqual([]);
    expect(await drawn()).toBeLessThan(400);

    await page.keyboard.press('Control+f');
    await page.keyboard.type('with the needle ends');
    await page.getByText('1 of 2 in one turn').waitFor();
    await answers(page).getByText('Paragraph 700').waitFor();
    await page.waitForTimeout(300);
    const place = await answers(page).getByText('Paragraph 700').boundingBox();
    const view = (await conversation(page).boundingBox())!;
    expect(place!.y).toBeGreaterThan(view.y);
    expect(place!.y).toBeLessThan(view.y + view.height);
    expectQuiet();
  });
});

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC';

const RICH = [
  '# A report',
  'Some *text* with `code`, a formula $e^{i\\pi} + 1 = 0$ and a [link](https://example.org).',
  '$$\\int_0^1 x^2 \\, dx = \\frac{1}{3}$$',
  '- [x] done\n- [ ] to do',
  '| a | b |\n|---|--:|\n| 1 | 2 |',
  '```rust\nfn main() {\n    // says it\n    println!("hello");\n}\n```',
  '```mermaid\ngraph TD\n  A[Start] --> B{Ready?}\n  B -->|yes| C[Go]\n  B -->|no| A\n```',
  'The end.',
].join('\n\n');

describe('an answer', () => {
  it('has coloured code, tables, task lists, formulas, diagrams, terminal output and pictures', async () => {
    const { page } = await open();
    await newSession(page);
    const ESC = '\u001b';
    await prompt(
      page,
      script([
        { reason: 'I think about it.' },
        {
          tool: {
            name: 'make',
            input: 'make test',
            output: `10 %\r100 %\n${ESC}[31mfailed${ESC}[0m: 1`,
            success: true,
          },
        },
        { part: { mimeType: 'image/png', base64: PNG } },
        { say: RICH, chunks: 20, delayMs: 5 },
        { usage: { inputTokens: 12, outputTokens: 34, context: { used: 460, size: 1000 } } },
      ]),
    );
    await idle(page);
    const answer = answers(page).last();
    await answer.locator('code .token-keyword', { hasText: 'fn' }).waitFor();
    await answer.locator('code .token-string').waitFor();
    expect(await answer.locator('code.language-rust').innerText()).toContain('println!("hello");');
    await answer.locator('td', { hasText: '2' }).waitFor();
    expect(await answer.locator('li').allInnerTexts()).toEqual(['☑ done', '☐ to do']);
    await answer.locator('.formula.block math mfrac').waitFor();
    expect(await answer.locator('.formula math').count()).toBe(2);
    const diagram = answer.getByRole('img', { name: /Diagram/ });
    await diagram.waitFor();
    expect(await diagram.evaluate((image: HTMLImageElement) => image.complete && image.naturalWidth > 50)).toBe(true);

    const tool = conversation(page).getByRole('group', { name: 'Tool make' });
    await tool.locator('summary').focus();
    await page.keyboard.press('Enter');
    const output = tool.getByRole('region', { name: 'Output' });
    expect(await output.innerText()).toBe('100 %\nfailed: 1');
    expect(await output.locator('.fg-red').innerText()).toBe('failed');

    await answer.getByRole('button', { name: /Enlarge the picture [0-9a-f]/ }).click();
    await page.getByRole('dialog').getByRole('img').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('group', { name: 'Use of the session' }).getByText('460 of 1k').waitFor();
    expectQuiet();
  });

  it('runs nothing that it contains, and breaks no rule of the page', async () => {
    const { page } = await open();
    await newSession(page);
    await page.evaluate(() => {
      (window as unknown as { alert: () => void }).alert = () => document.body.setAttribute('data-hacked', '');
    });
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>';
    const hostile = [
      '<script>alert(1)</script><img src=x onerror=alert(1)>',
      '[x](javascript:alert(1)) ![y](data:text/html,<script>alert(1)</script>)',
      svg,
      '```"onclick="alert(1)\nx\n```',
      '```html\n<img src=x onerror=alert(1)><script>alert(1)</script>\n```',
      '$\\href{javascript:alert(1)}{x}\\text{<img src=x onerror=alert(1)>}\\style{background:url(//e.org)}{y}$',
      '```mermaid\ngraph TD\n  A["<img src=x onerror=alert(1)>"] --> B[<script>alert(1)</script>]\n  click A href "javascript:alert(1)"\n  style A fill:url(//e.org)\n```',
      '| <b onmouseover=alert(1)>x</b> |\n|---|\n| <style>*{color:red}</style> |',
    ].join('\n\n');
    const name = '<img src=x onerror=alert(1)>"\u001b]0;x\u0007';
    await prompt(
      page,
      script([
        { say: hostile },
        {
          tool: {
            name,
            input: { path: `/w/${name}` },
            output: `\u001b[31m${hostile}\u001b]8;;javascript:alert(1)\u0007x`,
          },
        },
        { part: { mimeType: 'image/svg+xml', text: svg } },
        { part: { mimeType: 'text/html', text: hostile } },
        { say: 'That was it.' },
      ]),
    );
    await answers(page).getByText('That was it.').waitFor();
    await idle(page);
    for (const summary of await conversation(page).locator('summary').all()) await summary.click();
    for (const button of await conversation(page).getByRole('button', { name: 'Show', exact: true }).all())
      await button.click();
    await answers(page).locator('code.language-html .token-tag').first().waitFor();
    await page.waitForTimeout(500);
    expect(await page.evaluate(() => document.body.hasAttribute('data-hacked'))).toBe(false);
    const made = await page.evaluate(() => {
      const log = document.querySelector('[role=log]')!;
      const all = [...log.querySelectorAll('*')];
      return {
        scripts: log.querySelectorAll('script, style, iframe, object').length,
        handlers: all.filter((element) => element.getAttributeNames().some((one) => one.startsWith('on'))).length,
        addresses: [...log.querySelectorAll('[href], [src]')]
          .map((element) => element.getAttribute('href') ?? element.getAttribute('src')!)
          .filter((address) => !/^(https?:|data:image\/)/.test(address)),
      };
    });
    expect(made).toEqual({ scripts: 0, handlers: 0, addresses: [] });
    expectQuiet();
  });

  it('can be copied: the prompt, the answer, the code and the output', async () => {
    const { page } = await open({ permissions: ['clipboard-read', 'clipboard-write'] });
    await newSession(page);
    await prompt(page, script([{ say: 'Text with\n\n```sh\nmake test\n```\n' }]));
    await idle(page);
    const copied = (): Promise<string> => page.evaluate(() => navigator.clipboard.readText());
    await answers(page).getByRole('button', { name: 'Copy', exact: true }).click();
    await answers(page).getByRole('button', { name: 'Copied', exact: true }).waitFor();
    expect(await copied()).toBe('make test\n');
    await answers(page).getByRole('button', { name: 'Copy the answer' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(copied).toContain('Text with\n\n```sh');
    await conversation(page).getByRole('button', { name: 'Copy the prompt' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(copied).toContain('script:');
    expectQuiet();
  });
});

describe('an agent that works on a plan', () => {
  it('has its reads in one line, its edit with its size, and its plan above the prompt while it runs', async () => {
    await host.kill();
    const config = join(data.path, '../agents.toml');
    const agent = fileURLToPath(new URL('planning-agent.mjs', import.meta.url));
    const words = [process.execPath, agent].map((word) => JSON.stringify(word));
    writeFileSync(config, `[agents.planner]\ncommand = [${words.join(', ')}]\n`, { mode: 0o600 });
    host = await startHost(data.path, 0, ['--config', config]);
    const { page } = await open();
    await page.getByRole('button', { name: 'New session' }).first().click();
    await page.getByRole('radio', { name: /planner/i }).check();
    await page.getByRole('button', { name: 'Start session' }).click();
    await prompt(page, 'Work on it');
    const log = conversation(page);
    await log.getByText('Read 7 files').waitFor();
    const edit = log.locator('summary', { hasText: 'Edit' });
    await expect.poll(() => edit.innerText()).toMatch(/\+2\s*.*−1/s);
    const pinned = page.locator('details.pinned');
    await pinned.getByText('2 of 3 done').waitFor();
    await pinned.getByText('Test it').first().waitFor();
    await log.getByText('Read 7 files').click();
    await log.getByText('file6.rs').last().waitFor();
    await edit.click();
    await log.locator('.line.added').first().waitFor();
    if (process.env['SHOT']) await page.screenshot({ path: '/tmp/plan.png' });
    await page.getByRole('button', { name: 'Stop' }).click();
    await answers(page).getByText('Stopped').waitFor();
    await pinned.waitFor({ state: 'detached' });
    expectQuiet();
  });
});
