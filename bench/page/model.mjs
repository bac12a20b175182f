// A model on loopback that speaks OpenAI's protocol: it streams pieces of text at a steady rate.

import { createServer } from 'node:http';
import { pieces } from './text.mjs';

/** `plan.count` is the number of pieces of the next answers, `plan.perSecond` their rate. */
export async function startModel() {
  const plan = { count: 1, perSecond: 1_000 };
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      if (!request.url.endsWith('/chat/completions')) return void response.writeHead(404).end();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      stream(response, plan);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    plan,
    url: `http://127.0.0.1:${server.address().port}/v1`,
    stop: () => new Promise((resolve) => (server.close(resolve), server.closeAllConnections())),
  };
}

function stream(response, { count, perSecond }) {
  const text = [...pieces(count), '\n\nStreamed.'];
  const chunk = (choice) => {
    const common = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'fake' };
    response.write(
      `data: ${JSON.stringify({ ...common, choices: [{ index: 0, finish_reason: null, ...choice }] })}\n\n`,
    );
  };
  const begun = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    const due = Math.min(text.length, Math.ceil(((performance.now() - begun) / 1000) * perSecond));
    while (sent < due) chunk({ delta: { content: text[sent++] } });
    if (sent < text.length) return;
    clearInterval(timer);
    chunk({ delta: {}, finish_reason: 'stop' });
    response.end('data: [DONE]\n\n');
  }, 1);
  response.on('close', () => clearInterval(timer));
}
