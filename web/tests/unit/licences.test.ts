/** All dependencies of the page have a permissive licence. */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const PERMISSIVE = new Set(['MIT', 'MIT-0', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', '0BSD']);

/** Used by tests alone: nothing of it is in the page. */
const TESTS_ONLY: Record<string, string> = { 'node_modules/axe-core': 'MPL-2.0' };

const permissive = (licence: string): boolean =>
  PERMISSIVE.has(licence) ||
  licence
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((one) => PERMISSIVE.has(one));

it('every package in the lock file has a permissive licence', () => {
  const lock = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as {
    packages: Record<string, { license?: string }>;
  };
  const others = Object.entries(lock.packages).filter(
    ([name, { license }]) => name && !permissive(license ?? '') && TESTS_ONLY[name] !== license,
  );
  expect(others.map(([name, { license }]) => `${name}: ${license}`)).toEqual([]);
});
