/**
 * Every view is accessible in every colour scheme, and fits its window.
 *
 * With `SCREENSHOTS=<folder>` a picture of each view in each size and scheme is left there;
 * `tests/screenshots/compare.mjs` compares two such folders.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import axe, { type AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataFolder, type Host, openWindow, startBrowser, startHost } from './support';
import { prepare, type Size, SIZES, type Stage, VIEWS } from './views';

const pictures = process.env['SCREENSHOTS'];
const SCHEMES = ['light', 'dark'] as const;

let browser: Browser;
let data: ReturnType<typeof dataFolder>;
let host: Host;
let stage: Stage;

beforeAll(async () => {
  if (pictures) mkdirSync(pictures, { recursive: true });
  browser = await startBrowser();
  data = dataFolder();
  host = await startHost(data.path);
  stage = await prepare(host, data.home);
});
afterAll(async () => {
  await browser?.close();
  await host?.kill();
  data?.remove();
});

/** The violations of a page, each with the elements that it is about. */
async function violations(page: Page): Promise<string[]> {
  // Evaluated by the debugger, so the page's policy does not count for it.
  await page.evaluate(axe.source);
  const results = await page.evaluate(() => (window as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run());
  return results.violations.map(({ id, help, nodes }) => `${id} (${help}): ${nodes.map((n) => n.html).join(' | ')}`);
}

/** Parts of the page that reach beyond the window, which would then scroll sideways. */
const overflow = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** The tablet is between the two others: it is looked at, and not checked each time. */
const CHECKED = (Object.keys(SIZES) as Size[]).filter((size) => pictures || size !== 'tablet');

describe.each(CHECKED)('on a %s', (size) => {
  describe.each(SCHEMES)('in %s', (colorScheme) => {
    it.each(VIEWS)('$name is accessible and fits', async ({ name, open }) => {
      const window = await openWindow(browser, { viewport: SIZES[size], colorScheme, reducedMotion: 'reduce' });
      try {
        const { page } = window;
        await page.goto(host.link);
        await page
          .getByRole('button', { name: /^Grove/ })
          .first()
          .waitFor();
        await open(page, stage);
        expect(await overflow(page)).toBe(0);
        expect(await violations(page)).toEqual([]);
        if (pictures) await page.screenshot({ path: join(pictures, `${name}-${size}-${colorScheme}.png`) });
        expect(window.problems).toEqual([]);
      } finally {
        await window.close();
      }
    });
  });
});
