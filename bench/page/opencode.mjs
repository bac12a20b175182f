// opencode's server with its page, offline: its model is on loopback, and its home folder is its own.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startModel } from './model.mjs';
import { answer, prompt } from './text.mjs';

const VERSION = '1.18.33';

/** Starts it. `peers` keeps what npm installs for the next run. */
export async function startOpencode(peers) {
  const root = mkdtempSync(join(tmpdir(), 'grove-bench-opencode-'));
  const program = install(peers ?? join(root, 'peer'));
  const home = join(root, 'home');
  const work = join(root, 'project');
  for (const folder of [home, work]) mkdirSync(folder, { recursive: true });
  const model = await startModel();
  writeFileSync(join(work, 'opencode.json'), JSON.stringify(settings(model.url)));
  const env = {
    ...process.env,
    HOME: home,
    XDG_DATA_HOME: join(home, 'data'),
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_CACHE_HOME: join(home, 'cache'),
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
  };
  const port = await freePort();
  const words = ['serve', '--hostname', '127.0.0.1', '--port', String(port)];
  const child = spawn(program, words, { cwd: work, env, stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const base = `http://127.0.0.1:${port}`;
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    await model.stop();
    rmSync(root, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    await answers(base);
  } catch (error) {
    await stop();
    throw error;
  }
  let session = '';
  return {
    name: 'opencode',
    home: `${base}/`,
    longSession(turns) {
      session = 'ses_grovebenchlongsession0001';
      const file = join(root, 'long.json');
      writeFileSync(file, JSON.stringify(longSession(session, work, turns)));
      execFileSync(program, ['import', file], { cwd: work, env, stdio: 'ignore' });
      return `${base}/${Buffer.from(work).toString('base64url')}/session/${session}`;
    },
    async stream(count) {
      model.plan.count = count;
      const address = `${base}/session/${session}/prompt_async?directory=${encodeURIComponent(work)}`;
      const body = JSON.stringify({ parts: [{ type: 'text', text: 'Go on.' }] });
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(address, { method: 'POST', headers, body, signal: AbortSignal.timeout(30_000) });
      if (!answer.ok) throw new Error(`a prompt is answered with ${answer.status}`);
    },
    // Its page follows a stream of events over HTTP, not a socket.
    isDelta: () => false,
    view: 'main',
    stop,
  };
}

function install(folder) {
  mkdirSync(folder, { recursive: true });
  const words = [
    'install',
    '--prefix',
    folder,
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    `opencode-ai@${VERSION}`,
  ];
  execFileSync('npm', words, { stdio: ['ignore', 'ignore', 'inherit'] });
  const modules = join(folder, 'node_modules');
  const platform = readdirSync(modules).find((name) => name === `opencode-${process.platform}-${process.arch}`);
  if (!platform) throw new Error('there is no package for this platform');
  return join(modules, platform, 'bin', 'opencode');
}

const settings = (baseURL) => ({
  provider: {
    fake: {
      npm: '@ai-sdk/openai-compatible',
      name: 'fake',
      options: { baseURL, apiKey: 'none' },
      models: { fake: { name: 'fake' } },
    },
  },
  model: 'fake/fake',
  small_model: 'fake/fake',
});

async function answers(base) {
  for (let attempt = 0; attempt < 60; attempt++) {
    try {
      if ((await fetch(base, { signal: AbortSignal.timeout(2_000) })).ok) return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
  throw new Error('its server does not answer');
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** A session in the form of `opencode export`. Its ids are in the order of its messages. */
function longSession(id, directory, turns) {
  const start = Date.UTC(2026, 0, 1);
  const tokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } };
  const named = (kind, n, m) => `${kind}_0${(n * 4 + m).toString(16).padStart(11, '0')}grovebenchmark`;
  const messages = [];
  for (let n = 0; n < turns; n++) {
    const asked = named('msg', n, 0);
    const told = named('msg', n, 1);
    const created = start + n * 60_000;
    messages.push({
      info: {
        id: asked,
        sessionID: id,
        role: 'user',
        time: { created },
        agent: 'build',
        model: { providerID: 'fake', modelID: 'fake' },
        summary: { diffs: [] },
      },
      parts: [{ id: named('prt', n, 0), sessionID: id, messageID: asked, type: 'text', text: prompt(n) }],
    });
    messages.push({
      info: {
        id: told,
        sessionID: id,
        parentID: asked,
        role: 'assistant',
        mode: 'build',
        agent: 'build',
        path: { cwd: directory, root: '/' },
        cost: 0,
        tokens,
        modelID: 'fake',
        providerID: 'fake',
        time: { created: created + 1_000, completed: created + 2_000 },
        finish: 'stop',
      },
      parts: [{ id: named('prt', n, 1), sessionID: id, messageID: told, type: 'text', text: answer(n) }],
    });
  }
  const info = {
    id,
    slug: 'long-session',
    projectID: 'global',
    directory,
    path: directory.slice(1),
    title: 'Long',
    version: VERSION,
    cost: 0,
    tokens,
    time: { created: start, updated: start + turns * 60_000 },
  };
  return { info, messages };
}
