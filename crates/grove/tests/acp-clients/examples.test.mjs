// The example clients of ACP's TypeScript SDK, as their package has them: on stdio and on a WebSocket of the host.
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { command, data, grove, home, run, startHost } from "./support.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const example = (name) => join(here, "node_modules/acp-sdk-examples/dist/examples", name);

test("the example client has a conversation with its agent, which is Grove", async () => {
  // It starts its agent with `npx tsx agent.ts`, which is this program here.
  const bin = join(home, "bin");
  mkdirSync(bin);
  const npx = join(bin, "npx");
  writeFileSync(npx, `#!/bin/sh\nexec '${grove}' acp --data-dir '${data}'\n`);
  chmodSync(npx, 0o755);
  const options = { env: { PATH: `${bin}:${process.env.PATH}` }, question: "Choose an option", answer: "1\n" };
  const shown = await run(process.execPath, [example("client.js")], options);
  assert.match(shown, /Connected to agent \(protocol v1\)/);
  assert.match(shown, /Agent completed with: end_turn/);
  const session = shown.match(/Created session: (\S+)/)[1];
  assert.match(await command("show", session), /Hello, agent!/);
});

test("the example client for WebSockets has one with the host itself", async () => {
  const { url, token } = await startHost();
  const shown = await run(process.execPath, [example("ws-client.js")], { env: { ACP_WS_URL: `${url}?tkn=${token}` } });
  assert.match(shown, /Done: end_turn/);
  const session = shown.match(/Saved session (\S+); loadSession=true/)[1];
  assert.match(await command("show", session), /Hello over WebSocket/);
  // Its own token is not the host's.
  const refused = new WebSocket(url, { headers: { Authorization: "Bearer example-token" } });
  const [error] = await once(refused, "error");
  assert.match(error.message, /403/);
});
