import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = fileURLToPath(new URL('../..', import.meta.url));

export function vectors<T>(name: string): T[] | undefined {
  const file = join(web, 'vectors', name);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as T[]) : undefined;
}

/** Files of a fixtures folder outside the repository; undefined if they are missing, which fails in CI. */
export function fixtures<T>(folder: string): [string, T][] | undefined {
  const roots = [process.env['GROVE_FIXTURES'], join(web, '../../shared/fixtures')];
  const root = roots.find((r) => r !== undefined && existsSync(join(r, folder)));
  if (root === undefined) {
    if (process.env['CI'] === 'true') throw new Error(`the recordings are missing: set GROVE_FIXTURES (${folder})`);
    return undefined;
  }
  const path = join(root, folder);
  return readdirSync(path)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => [name.replace('.json', ''), JSON.parse(readFileSync(join(path, name), 'utf8')) as T]);
}

/** On the wire null and absent mean the same. */
export function normal(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normal);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).filter(([, v]) => v !== null && v !== undefined);
  return Object.fromEntries(entries.map(([k, v]) => [k, normal(v)]));
}

/** Freezes a value and everything in it: a reducer that changes its input then throws. */
export function frozen<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(frozen);
  }
  return value;
}

/** Repeatable random numbers: a function that returns one below its argument. */
export function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => (state = (state * 48_271) % 2_147_483_647) % below;
}
