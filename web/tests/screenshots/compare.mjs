/**
 * Compares two folders of screenshots: node tests/screenshots/compare.mjs BEFORE AFTER [REPORT]
 *
 * Prints one line for each picture, and leaves a picture of the differences of each changed one in the folder REPORT. Exits with 1 if
 * a picture has changed, is new or is missing.
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';

/** The part of pixels that may differ: fonts are not drawn alike everywhere. */
const TOLERANCE = 0.001;

const [before, after, report] = process.argv.slice(2);
if (!before || !after || !existsSync(before) || !existsSync(after)) {
  console.error('usage: node tests/screenshots/compare.mjs BEFORE AFTER [REPORT]');
  process.exit(2);
}
if (report) mkdirSync(report, { recursive: true });

const pictures = (folder) => readdirSync(folder).filter((name) => name.endsWith('.png'));
const read = (folder, name) => PNG.sync.read(readFileSync(join(folder, name)));

/** The part of pixels that differ, with a picture of them; all of them if the sizes differ. */
function compare(name) {
  const [old, now] = [read(before, name), read(after, name)];
  if (old.width !== now.width || old.height !== now.height) return { part: 1 };
  const picture = new PNG({ width: old.width, height: old.height });
  const count = pixelmatch(old.data, now.data, picture.data, old.width, old.height, { threshold: 0.1 });
  return { part: count / (old.width * old.height), picture };
}

let changed = 0;
for (const name of [...new Set([...pictures(before), ...pictures(after)])].sort()) {
  const missing = !existsSync(join(after, name));
  if (missing || !existsSync(join(before, name))) {
    changed += 1;
    console.log(`${missing ? 'missing' : 'new'.padEnd(7)}  ${name}`);
    continue;
  }
  const { part, picture } = compare(name);
  if (part > TOLERANCE) {
    changed += 1;
    if (report && picture) writeFileSync(join(report, name), PNG.sync.write(picture));
  }
  console.log(`${part > TOLERANCE ? 'changed' : 'same   '}  ${name}  ${(part * 100).toFixed(2)} %`);
}
console.log(`${changed} changed`);
process.exit(changed > 0 ? 1 : 0);
