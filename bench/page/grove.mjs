// Grove's host with its page, in a data folder of its own.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { answer, pieces, prompt } from './text.mjs';

const program = process.env.GROVE_BIN ?? fileURLToPath(new URL('../../target/release/grove', import.meta.url));

export async function startGrove() {
  const root = mkdtempSync(join(tmpdir(), 'grove-bench-page-'));
  const home = join(root, 'home');
  const data = join(root, 'data');
  const config = join(root, 'grove.toml');
  mkdirSync(join(home, 'project'), { recursive: true });
  writeFileSync(config, '', { mode: 0o600 });
  const env = { ...process.env, HOME: home, GROVE_CONFIG: config };
  const serve = ['serve', '--data-dir', data, '--listen', '127.0.0.1:0', '--json'];
  const child = spawn(program, serve, { stdio: ['ignore', 'pipe', 'ignore'], env });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const first = await new Promise((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    void ended.then(() => reject(new Error('the host ended before it was there')));
  });
  const { http, token } = JSON.parse(first);
  const run = (...words) => execFileSync(program, [...words, '--data-dir', data], { env, encoding: 'utf8' }).trim();
  let session = '';
  return {
    name: 'grove',
    home: `${http}/#token=${encodeURIComponent(token)}`,
    /** A session of this many turns, and the address at which the page shows it. */
    longSession(turns) {
      const said = run(
        'import',
        writeTurns(home, turns),
        '--agent',
        'scripted',
        '--cwd',
        join(home, 'project'),
        '--json',
      );
      session = JSON.parse(said.split('\n', 1)[0]).session;
      return `${http}/#/session/${encodeURIComponent(session)}`;
    },
    /** Streams an answer of this many pieces into the long session: a piece in a millisecond, or as fast as the host takes them. */
    async stream(count, isPaced) {
      const said = { say: pieces(count).join(''), chunks: count, delayMs: isPaced ? 1 : 0 };
      const words = ['send', session, '-', '--data-dir', data];
      const sent = spawn(program, words, { env, stdio: ['pipe', 'ignore', 'ignore'] });
      sent.stdin.end(`script:${JSON.stringify([said, { say: '\n\nStreamed.' }])}`);
      const code = await new Promise((resolve) => sent.once('exit', resolve));
      if (code !== 0) throw new Error(`grove send ended with ${code}`);
    },
    /** A delta of the open socket, as text. */
    isDelta: (frame) => frame.includes('"chat/delta"'),
    view: '[role=log]',
    async stop() {
      child.kill('SIGTERM');
      await ended;
      rmSync(root, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/** A session as Claude Code stores it, which the host imports. */
function writeTurns(home, turns) {
  const lines = [];
  let parentUuid = null;
  const write = (type, n, message) => {
    const uuid = `${type}-${n}`;
    const timestamp = new Date(Date.UTC(2026, 0, 1) + n * 60_000 + (type === 'user' ? 0 : 1_000)).toISOString();
    const common = { cwd: join(home, 'project'), version: '2.1.0', isSidechain: false, sessionId: 'long' };
    lines.push(JSON.stringify({ ...common, type, uuid, parentUuid, timestamp, message }));
    parentUuid = uuid;
  };
  for (let n = 0; n < turns; n++) {
    write('user', n, { role: 'user', content: prompt(n) });
    const content = [{ type: 'text', text: answer(n) }];
    write('assistant', n, { id: `m${n}`, role: 'assistant', model: 'm', stop_reason: 'end_turn', content });
  }
  const folder = join(home, '.claude', 'projects', '-project');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'long.jsonl');
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}
