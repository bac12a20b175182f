/**
 * An agent that speaks ACP and needs no model. It answers with a list of what it received, so that a test sees what
 * reaches an agent. A prompt that begins with `run ` asks for permission to run the rest.
 */

import { createInterface } from 'node:readline';

let next = 1;
let session = 0;
let mode = 'ask';
const waiting = new Map();

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

function ask(method, params) {
  const id = next++;
  send({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

function update(sessionId, change) {
  send({ method: 'session/update', params: { sessionId, update: change } });
}

const say = (sessionId, text) =>
  update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });

function describe(block) {
  switch (block.type) {
    case 'text':
      return `text: ${block.text}`;
    case 'image':
      return `image: ${block.mimeType}, ${Buffer.from(block.data, 'base64').length} bytes`;
    case 'resource_link':
      return `link: ${block.name} ${block.uri}`;
    case 'resource':
      return `embedded: ${block.resource.mimeType}, ${(block.resource.text ?? '').length} characters`;
    default:
      return `${block.type}`;
  }
}

async function runPrompt({ sessionId, prompt }) {
  const text = prompt.find((block) => block.type === 'text')?.text ?? '';
  say(sessionId, `${prompt.map((block) => `- ${describe(block)}`).join('\n')}\n`);
  if (text === 'mode') say(sessionId, `\nmode: ${mode}`);
  if (!text.startsWith('run ')) return;
  const command = text.slice('run '.length);
  const toolCall = {
    toolCallId: `call-${next++}`,
    title: command,
    kind: 'execute',
    status: 'pending',
    rawInput: { command },
  };
  const answer = await ask('session/request_permission', {
    sessionId,
    toolCall,
    options: [
      { optionId: 'once', name: 'Allow once', kind: 'allow_once' },
      { optionId: 'never', name: 'Do not run it', kind: 'reject_once' },
    ],
  });
  const reason = answer._meta?.reason;
  say(
    sessionId,
    `\noutcome: ${answer.outcome.optionId ?? answer.outcome.outcome}${reason ? `, because: ${reason}` : ''}`,
  );
}

async function answer({ id, method, params }) {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: 1,
        agentCapabilities: { promptCapabilities: { image: true, embeddedContext: true } },
        authMethods: [],
      };
    case 'session/new': {
      const sessionId = `s${++session}`;
      setTimeout(() =>
        update(sessionId, {
          sessionUpdate: 'available_commands_update',
          availableCommands: [
            { name: 'review', description: 'Looks at what has changed', input: { hint: 'a branch' } },
            { name: 'reset', description: 'Begins again' },
          ],
        }),
      );
      return {
        sessionId,
        modes: {
          currentModeId: 'ask',
          availableModes: [
            { id: 'ask', name: 'Ask first' },
            { id: 'code', name: 'Write code' },
          ],
        },
      };
    }
    case 'session/set_mode':
      mode = params.modeId;
      return {};
    case 'session/prompt':
      await runPrompt(params);
      return { stopReason: 'end_turn' };
    default:
      throw Object.assign(new Error(`no ${method}`), { id });
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  if (message.method === undefined) {
    waiting.get(message.id)?.(message.result ?? { outcome: { outcome: 'cancelled' } });
    waiting.delete(message.id);
  } else if (message.id !== undefined) {
    answer(message).then(
      (result) => send({ id: message.id, result }),
      (error) => send({ id: message.id, error: { code: -32601, message: error.message } }),
    );
  }
});
