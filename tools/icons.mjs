#!/usr/bin/env node
// Draws the icons of the page's manifest from the tree of `favicon.svg`, with Debian's chromium. Run it after a change of the tree:
//
//     node tools/icons.mjs

import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';

const web = new URL('../web/', import.meta.url);
const { chromium } = createRequire(new URL('package.json', web))('playwright-core');
const svg = readFileSync(new URL('public/favicon.svg', web), 'utf8');
const path = /<path d="([^"]+)"/.exec(svg)[1];

// A maskable icon fills its square, with the tree inside the circle that every mask leaves. A badge is a silhouette.
const icons = [
  ...[192, 512].map((size) => ({ name: `icon-${size}`, size, ground: '', tree: '#2f7d5b', share: 1 })),
  ...[192, 512].map((size) => ({ name: `icon-maskable-${size}`, size, ground: '#2a7150', tree: '#ffffff', share: 0.62 })),
  // iOS shows no transparency.
  { name: 'apple-touch-icon', size: 180, ground: '#2a7150', tree: '#ffffff', share: 0.7 },
  { name: 'badge', size: 96, ground: '', tree: '#ffffff', share: 1 },
];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
const page = await browser.newPage();
for (const { name, size, ground, tree, share } of icons) {
  const [side, edge] = [32 / share, (32 / share - 32) / 2];
  const back = ground ? `<rect x="${-edge}" y="${-edge}" width="${side}" height="${side}" fill="${ground}"/>` : '';
  const drawn = `<svg xmlns="http://www.w3.org/2000/svg" width="${size}" height="${size}" viewBox="${-edge} ${-edge} ${side} ${side}">${back}<path d="${path}" fill="${tree}"/></svg>`;
  await page.setViewportSize({ width: size, height: size });
  await page.setContent(`<body style="margin:0">${drawn}</body>`);
  writeFileSync(new URL(`public/${name}.png`, web), await page.screenshot({ omitBackground: true }));
}
await browser.close();
