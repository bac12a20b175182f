// An agent over ACP that works on a plan: it reads files in a row, runs a command and edits a file.

import { createInterface } from 'node:readline';

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const update = (sessionId, update) => send({ method: 'session/update', params: { sessionId, update } });
const pause = () => new Promise((resolve) => setTimeout(resolve, 30));

const STEPS = ['Read the code', 'Change it', 'Test it'];
const plan = (done) => ({
  sessionUpdate: 'plan',
  entries: STEPS.map((content, n) => ({
    content,
    priority: 'medium',
    status: n < done ? 'completed' : n === done ? 'in_progress' : 'pending',
  })),
});

async function call(session, toolCallId, kind, title, rawInput, content) {
  update(session, { sessionUpdate: 'tool_call', toolCallId, kind, title, rawInput, status: 'in_progress' });
  await pause();
  update(session, { sessionUpdate: 'tool_call_update', toolCallId, status: 'completed', content });
}

const text = (text) => [{ type: 'content', content: { type: 'text', text } }];

async function prompt(id, session) {
  update(session, plan(0));
  for (let n = 0; n < 7; n++) {
    await call(session, `read-${n}`, 'read', 'Read', { path: `/w/src/file${n}.rs` }, text('fn main() {}'));
  }
  update(session, plan(1));
  const diff = {
    type: 'diff',
    path: '/w/src/file0.rs',
    oldText: 'let a;\nlet b;\n',
    newText: 'let a;\nlet c;\nlet d;\n',
  };
  await call(session, 'edit', 'edit', 'Edit file0.rs', { path: '/w/src/file0.rs' }, [diff]);
  update(session, plan(2));
  await call(session, 'run', 'execute', 'make test', { command: 'make test' }, text('\u001b[32mok\u001b[0m'));
  await new Promise((resolve) => (released = resolve));
  send({ id, result: { stopReason: 'cancelled' } });
}

// The turn ends when its prompt is cancelled, so that a test sees it run.
let released = () => {};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    send({ id, result: { protocolVersion: 1, agentCapabilities: {}, authMethods: [] } });
  } else if (method === 'session/new') send({ id, result: { sessionId: 's1' } });
  else if (method === 'session/prompt') void prompt(id, params.sessionId);
  else if (method === 'session/cancel') released();
  else if (id !== undefined && method) send({ id, error: { code: -32601, message: 'unknown' } });
});
