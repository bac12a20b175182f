// A browser with what is read from it: traces, memory, the scripts of a page.

import { createRequire } from 'node:module';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

// The page's own copy: the benchmark installs no second one.
const { chromium } = createRequire(new URL('../../web/package.json', import.meta.url))('playwright-core');

export function startBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM_BIN ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'],
  });
}

export async function openPage(browser) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 } });
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  return { context, page, devtools };
}

const CATEGORIES = [
  'devtools.timeline',
  'disabled-by-default-devtools.timeline',
  'loading',
  'toplevel',
  'blink.user_timing',
];

/** The events of a trace while `work` runs. */
export async function traced(browser, page, work) {
  const path = join(tmpdir(), `grove-bench-page-${process.pid}.json`);
  await browser.startTracing(page, { path, categories: CATEGORIES });
  try {
    await work();
  } finally {
    await browser.stopTracing();
  }
  const { traceEvents } = JSON.parse(readFileSync(path, 'utf8'));
  rmSync(path);
  return traceEvents;
}

/** The page's main threads: those of renderers that run scripts. */
function mainThreads(events) {
  const named = events.filter((event) => event.name === 'thread_name' && event.args?.name === 'CrRendererMain');
  return new Set(named.map((event) => `${event.pid}:${event.tid}`));
}

/** The main thread's tasks in milliseconds: how long they took, and their processor time. */
export function tasks(events) {
  const threads = mainThreads(events);
  return events
    .filter((event) => event.ph === 'X' && /RunTask$/.test(event.name) && threads.has(`${event.pid}:${event.tid}`))
    .map((event) => ({ ms: event.dur / 1000, cpu: (event.tdur ?? 0) / 1000 }));
}

/** The frames that the main thread made in a second, in the part of the trace of this length with the most of them. */
export function framesPerSecond(events, seconds) {
  const threads = mainThreads(events);
  const frames = events.filter((event) => event.name === 'Commit' && threads.has(`${event.pid}:${event.tid}`));
  const times = frames.map((event) => event.ts).sort((a, b) => a - b);
  let most = 0;
  for (let first = 0, end = 0; first < times.length; first++) {
    while (end < times.length && times[end] - times[first] < seconds * 1e6) end++;
    most = Math.max(most, end - first);
  }
  return most / seconds;
}

/** Milliseconds from the navigation to the first paint with content. */
export function firstPaint(events) {
  const paint = events.find((event) => event.name === 'firstContentfulPaint');
  const starts = events.filter((event) => event.name === 'navigationStart' && event.ts <= (paint?.ts ?? 0));
  const start = starts.sort((a, b) => a.ts - b.ts).at(-1);
  return paint && start ? (paint.ts - start.ts) / 1000 : NaN;
}

/** Bytes of scripts, and nodes of the page, without garbage. */
export async function memory(devtools) {
  await devtools.send('HeapProfiler.enable');
  await devtools.send('HeapProfiler.collectGarbage');
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  const { nodes } = await devtools.send('Memory.getDOMCounters');
  return { heap: usedSize, nodes };
}

/** Counts the compressed bytes of the scripts that a page loads until it is stopped. */
export function countScripts(page) {
  const bodies = [];
  const heard = (response) => {
    if (response.request().resourceType() === 'script') bodies.push(response.body().catch(() => Buffer.alloc(0)));
  };
  page.on('response', heard);
  return async () => {
    page.off('response', heard);
    const all = await Promise.all(bodies);
    return { files: all.length, gzip: all.reduce((sum, body) => sum + gzipSync(body, { level: 9 }).length, 0) };
  };
}

export const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
