// acpx with `grove acp` as its agent, and a session that goes on in Grove's own commands.
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { command, data, grove, run, script, tool } from "./support.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const agent = ["--agent", `${grove} acp --data-dir ${data}`];
const acpx = (...args) => run(join(here, "node_modules/.bin/acpx"), [...agent, ...args]);

test("a prompt streams, and its permission request is answered", async () => {
  const lines = await acpx("--approve-all", "--format", "json", "exec", script({ say: "hello" }, tool, { say: " done" }));
  const frames = lines.trim().split("\n").map((line) => JSON.parse(line));
  const updates = frames.filter((frame) => frame.method === "session/update").map((frame) => frame.params.update);
  const text = updates.filter((update) => update.sessionUpdate === "agent_message_chunk");
  assert.equal(text.map((update) => update.content.text).join(""), "hello done");
  assert.ok(frames.some((frame) => frame.method === "session/request_permission"));
  assert.ok(updates.some((update) => update.status === "completed"));
  assert.equal(frames.at(-1).result.stopReason, "end_turn");
});

test("a denied permission request fails its call", async () => {
  // acpx ends with an error once it has denied something; the turn goes on.
  const shown = await acpx("--deny-all", "exec", script(tool, { say: "bye" })).catch((error) => error.message);
  assert.match(shown, /failed/);
  assert.match(shown, /bye/);
});

test("a session of acpx goes on in Grove and is loaded again with it", async () => {
  const id = (await acpx("sessions", "new")).trim();
  await acpx("--approve-all", "prompt", script({ say: "first" }));
  await acpx("set", "model", "scripted/slow-start");
  await command("send", id, script({ say: "from elsewhere" }));
  assert.match(await acpx("--approve-all", "prompt", script({ say: "third" })), /third/);
  const shown = await command("show", id);
  for (const said of ["first", "from elsewhere", "third"]) assert.match(shown, new RegExp(said));
});
