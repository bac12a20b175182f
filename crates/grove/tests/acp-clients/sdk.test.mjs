// A program with ACP's TypeScript SDK: the same on stdio and on a WebSocket, and one session through both.
import assert from "node:assert/strict";
import { Readable, Writable } from "node:stream";
import { test } from "node:test";
import * as acp from "@agentclientprotocol/sdk/unstable";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";
import { command, script, startAgent, startHost, tool, work } from "./support.mjs";

/** Runs a program on a connection. It notes what it is told, and allows everything once. */
async function connected(stream, program) {
  const told = [];
  const allow = ({ params }) => {
    const option = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  };
  return acp
    .client({ name: "sdk-test" })
    .onRequest(acp.methods.client.session.requestPermission, allow)
    .onNotification(acp.methods.client.session.update, ({ params }) => void told.push(params.update))
    .connectWith(stream, async (agent) => {
      const { agent: methods } = acp.methods;
      const initialized = await agent.request(methods.initialize, { protocolVersion: 1, clientCapabilities: {} });
      const text = (kind) =>
        told.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join("");
      const prompt = (sessionId, ...steps) =>
        agent.request(methods.session.prompt, { sessionId, prompt: [{ type: "text", text: script(...steps) }] });
      return program({ agent, methods, initialized, told, text, prompt });
    });
}

test("a session begins on stdio, goes on over a WebSocket, and has its title and its turns in both", async () => {
  const { url, token } = await startHost();
  const child = startAgent();
  const stdio = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const sessionId = await connected(stdio, async ({ agent, methods, initialized, prompt, text }) => {
    assert.ok(initialized.agentCapabilities.sessionCapabilities.title, "titles can be set");
    const { sessionId } = await agent.request(methods.session.new, { cwd: work, mcpServers: [] });
    const ended = await prompt(sessionId, { say: "first" }, tool);
    assert.equal(ended.stopReason, "end_turn");
    assert.equal(text("agent_message_chunk"), "first");
    const named = await agent.request(methods.session.setTitle, { sessionId, title: "Of the SDK" });
    assert.equal(named.title, "Of the SDK");
    return sessionId;
  });
  child.kill();
  const headers = { Authorization: `Bearer ${token}` };
  const socket = createWebSocketStream(url, { WebSocket, headers });
  await connected(socket, async ({ agent, methods, prompt, text }) => {
    const { sessions } = await agent.request(methods.session.list, {});
    assert.deepEqual(sessions.map((session) => [session.sessionId, session.title]), [[sessionId, "Of the SDK"]]);
    await agent.request(methods.session.load, { sessionId, cwd: work, mcpServers: [] });
    assert.equal(text("agent_message_chunk"), "first");
    const ended = await prompt(sessionId, tool, { say: " second" });
    assert.equal(ended.stopReason, "end_turn");
    assert.equal(text("agent_message_chunk"), "first second");
  });
  const shown = await command("show", sessionId);
  assert.match(shown, /first[^]*second/);
});
