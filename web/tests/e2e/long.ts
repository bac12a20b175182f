/** Long sessions, which are imported: prompting for each turn would take minutes. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Host } from './support';

/** Imports a session of this many turns, and returns its URI. Turn `n` asks "Question n?" and is answered by `answer(n)`. */
export function importLong(host: Host, home: string, turns: number, answer: (n: number) => string): string {
  const folder = join(home, 'project');
  mkdirSync(folder, { recursive: true });
  const lines: string[] = [];
  let parent: string | null = null;
  const write = (type: 'user' | 'assistant', n: number, message: object): void => {
    const uuid = `${type}-${n}`;
    const timestamp = new Date(Date.UTC(2026, 0, 1) + n * 60_000 + (type === 'user' ? 0 : 1_000)).toISOString();
    const common = { cwd: folder, version: '2.1.0', isSidechain: false, sessionId: 'long', userType: 'external' };
    lines.push(JSON.stringify({ ...common, type, uuid, parentUuid: parent, timestamp, message }));
    parent = uuid;
  };
  for (let n = 0; n < turns; n++) {
    write('user', n, { role: 'user', content: `Question ${n}?` });
    const content = [{ type: 'text', text: answer(n) }];
    const usage = { input_tokens: 10, output_tokens: 20 };
    write('assistant', n, { id: `m${n}`, role: 'assistant', model: 'm', stop_reason: 'end_turn', content, usage });
  }
  const projects = join(home, '.claude', 'projects', '-project');
  mkdirSync(projects, { recursive: true });
  const file = join(projects, 'long.jsonl');
  writeFileSync(file, `${lines.join('\n')}\n`);
  const said = host.grove('import', file, '--agent', 'scripted', '--cwd', folder, '--json');
  return (JSON.parse(said.split('\n', 1)[0]!) as { session: string }).session;
}
