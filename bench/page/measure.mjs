// Measures the page: Grove’s, and opencode’s in the same run. See bench/README.md.

import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import {
  countScripts,
  firstPaint,
  framesPerSecond,
  median,
  memory,
  openPage,
  startBrowser,
  tasks,
  traced,
} from './browser.mjs';
import { startGrove } from './grove.mjs';
import { startOpencode } from './opencode.mjs';
import { answer, TURNS } from './text.mjs';

const { values: options } = parseArgs({
  options: {
    peers: { type: 'boolean', default: false },
    'peers-dir': { type: 'string' },
    turns: { type: 'string', default: String(TURNS) },
    runs: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '20' },
    minutes: { type: 'string' },
  },
});
const turns = Number(options.turns);
const runs = Number(options.runs);
const seconds = options.minutes ? 60 * Number(options.minutes) : Number(options.seconds);
/** Pieces of an answer in a second. */
const RATE = 1_000;
/** Tracing for longer would fill the memory of this machine. */
const MOST_TRACED_SECONDS = 30;

/** A page that shows no end of a session by then is not measured. */
const MOST_OPENING_MS = 60_000;

const GOALS = {
  'first paint': { most: 300, unit: 'ms' },
  'opened at its end': { most: 300, unit: 'ms' },
  'longest task while scrolling': { most: 50, unit: 'ms' },
  'longest task while streaming': { most: 50, unit: 'ms' },
  'initial scripts, compressed': { most: 150, unit: 'KB' },
};

const contestants = [await startGrove()];
if (options.peers) {
  try {
    contestants.push(await startOpencode(options['peers-dir']));
  } catch (error) {
    console.log(`opencode is left out: ${error instanceof Error ? error.message : error}`);
  }
}
const browser = await startBrowser();
const results = new Map();
let isMet = true;
try {
  for (const contestant of contestants) {
    try {
      results.set(contestant.name, await measure(contestant));
    } catch (error) {
      if (contestant.name === 'grove') throw error;
      console.log(`${contestant.name} is left out: ${error instanceof Error ? error.message : error}`);
    }
  }
  print();
} finally {
  await browser.close();
  for (const contestant of contestants) await contestant.stop();
}
process.exitCode = isMet ? 0 : 1;

async function measure(contestant) {
  const figures = {};
  const { context, page, devtools } = await openPage(browser);
  const paints = [];
  const stopCounting = countScripts(page);
  for (let run = 0; run < runs; run++) {
    await page.goto('about:blank');
    const events = await traced(browser, page, async () => {
      await page.goto(contestant.home, { waitUntil: 'load' });
      await page.waitForTimeout(800);
    });
    paints.push(firstPaint(events));
    if (run === 0) {
      const { gzip, files } = await stopCounting();
      figures['initial scripts, compressed'] = gzip / 1000;
      figures['initial scripts'] = files;
    }
  }
  figures['first paint'] = median(paints);

  const address = await contestant.longSession(turns);
  const opened = [];
  for (let run = 0; run < runs; run++) opened.push(await open(page, contestant, address));
  figures['opened at its end'] = median(opened);
  await scroll(contestant, page, devtools, figures);
  await open(page, contestant, address);
  await stream(contestant, page, devtools, figures);
  await context.close();
  return figures;
}

/** Milliseconds from the navigation until the last answer is painted in the view. The page's files are in the cache. */
async function open(page, contestant, address) {
  await page.goto('about:blank');
  await page.goto(address, { waitUntil: 'commit' });
  const last = answer(turns - 1).split('\n', 1)[0];
  return page.evaluate(
    ([text, most]) =>
      new Promise((resolve, reject) => {
        const look = () => {
          if (performance.now() > most) return void reject(new Error('the last answer is not shown'));
          const walker = document.createTreeWalker(document.body ?? document.documentElement, NodeFilter.SHOW_TEXT);
          for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            if (!node.nodeValue.includes(text)) continue;
            const rect = node.parentElement.getBoundingClientRect();
            if (rect.top >= 0 && rect.bottom <= innerHeight) {
              // The frame in which it is painted ends with the next one's beginning.
              requestAnimationFrame(() => resolve(performance.now()));
              return;
            }
          }
          requestAnimationFrame(look);
        };
        look();
      }),
    [last, MOST_OPENING_MS],
  );
}

/** Turns the wheel up and down again. */
async function scroll(contestant, page, devtools, figures) {
  const view = page.locator(contestant.view).first();
  await view.hover();
  const before = await memory(devtools);
  const events = await traced(browser, page, async () => {
    for (const by of [-800, 800]) {
      for (let step = 0; step < 120; step++) {
        await page.mouse.wheel(0, by);
        await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
      }
    }
  });
  addTasks(figures, events, 'scrolling');
  figures['nodes after opening'] = before.nodes;
  figures['nodes after scrolling'] = (await memory(devtools)).nodes;
}

async function stream(contestant, page, devtools, figures) {
  const deltas = { count: 0, first: 0, last: 0 };
  await devtools.send('Network.enable');
  const heard = ({ response, timestamp }) => {
    if (!contestant.isDelta(response?.payloadData ?? '')) return;
    if (deltas.count++ === 0) deltas.first = timestamp;
    deltas.last = timestamp;
  };
  devtools.on('Network.webSocketFrameReceived', heard);
  const events = await traced(browser, page, async () => {
    // The pauses of the scripted agent are longer than a millisecond on a busy machine.
    await contestant.stream(seconds * RATE, seconds > MOST_TRACED_SECONDS);
    await page.waitForTimeout(Math.min(seconds, MOST_TRACED_SECONDS) * 1000);
  });
  const counted = { ...deltas };
  const lasted = counted.count > 1 ? counted.last - counted.first : Math.min(seconds, MOST_TRACED_SECONDS);
  const readings = [await memory(devtools)];
  const rest = seconds - MOST_TRACED_SECONDS;
  for (let passed = 0; passed < rest; passed += 30) {
    await page.waitForTimeout(30_000);
    readings.push(await memory(devtools));
  }
  devtools.off('Network.webSocketFrameReceived', heard);
  addTasks(figures, events, 'streaming');
  figures['frames in a second while streaming'] = framesPerSecond(events, lasted);
  if (counted.count > 1) figures['deltas in a second'] = counted.count / lasted;
  figures['script memory while streaming (MB)'] = readings.map(({ heap }) => (heap / 1e6).toFixed(1)).join(', ');
  figures['nodes while streaming'] = readings.map(({ nodes }) => nodes).join(', ');
}

/** On a machine with other work, a task takes longer than its processor time: both are shown. */
function addTasks(figures, events, during) {
  const found = tasks(events);
  figures[`longest task while ${during}`] = Math.max(0, ...found.map((task) => task.ms));
  figures[`most processor time of a task while ${during}`] = Math.max(0, ...found.map((task) => task.cpu));
  figures[`tasks above 50 ms while ${during}`] = found.filter((task) => task.ms > 50).length;
}

function print() {
  const names = [...new Set([...results.values()].flatMap(Object.keys))];
  const [load] = loadavg();
  console.log(
    `\n${availableParallelism()} processors, load ${load.toFixed(1)}; ${turns} turns, ${seconds} s of streaming`,
  );
  console.log(`\n| figure | ${[...results.keys()].join(' | ')} | goal |`);
  console.log(`|---|${[...results.keys()].map(() => '--:').join('|')}|--:|`);
  for (const name of names) {
    const goal = GOALS[name];
    const cells = [...results].map(([contestant, figures]) => {
      const value = figures[name];
      if (value === undefined) return '–';
      const missed = goal && contestant === 'grove' && !(value <= goal.most);
      if (missed) isMet = false;
      const shown = typeof value === 'number' ? (value < 100 ? value.toFixed(1) : Math.round(value)) : value;
      return missed ? `**${shown}**` : `${shown}`;
    });
    console.log(`| ${name} | ${cells.join(' | ')} | ${goal ? `${goal.most} ${goal.unit}` : ''} |`);
  }
}
