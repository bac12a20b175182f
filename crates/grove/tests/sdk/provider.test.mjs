// An SDK client with its own storage: Grove's disk contains nothing of its sessions.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { test } from "node:test";
import { approveAll } from "@github/copilot-sdk";
import { connect, contents, folder, GROVE, host, script, Shelf, storage, surroundings, until } from "./support.mjs";

const bring = (shelf) => ({ onPermissionRequest: approveAll, createSessionFsProvider: shelf.provider });
const said = (list) => list.filter((event) => event.type === "assistant.message").map((event) => event.data.content);

test("a session lies with its client: log, manifest, plan, checkpoints, large output", async (t) => {
    const home = await folder(t);
    const at = await host(t, home);
    const shelf = new Shelf();
    const client = await connect(t, at, { sessionFs: storage });
    const session = await client.createSession({ model: "scripted", ...bring(shelf) });
    const id = session.sessionId;
    assert.equal(session.workspacePath, "/state");
    const output = "gigantic-".repeat(12_000).slice(0, 100_000);
    const tool = { name: "shell", input: "ls", output, permission: "shell" };
    await session.sendAndWait({ prompt: script([{ title: "quokka" }, { say: "wombat says hello" }, { tool }]) });
    assert.match(shelf.text(id, "/state/events.jsonl"), /wombat says hello/, "idle means durable");
    assert.match(shelf.text(id, "/state/workspace.yaml"), /^id:/m);

    await session.rpc.plan.update({ content: "# Test Plan" });
    assert.equal(shelf.text(id, "/state/plan.md"), "# Test Plan");
    assert.equal((await session.rpc.plan.read()).content, "# Test Plan");

    assert.doesNotMatch(shelf.text(id, "/state/events.jsonl"), /checkpointNumber/);
    const compacted = await session.rpc.history.compact({});
    assert.equal(compacted.success, true);
    await until("the log tells of the checkpoint", () => /checkpointNumber/.test(shelf.text(id, "/state/events.jsonl")));
    const checkpoint = [...shelf.files(id).files.keys()].find((name) => /\/state\/checkpoints\/001-/.test(name));
    assert.ok(checkpoint, "a summary lies among the checkpoints");

    await session.disconnect();
    await client.stop();
    await at.stop();
    const disk = await contents(join(home, "data"));
    for (const word of ["wombat", "quokka", "gigantic", "Test Plan", "/state", "/proj"]) {
        assert.ok(!disk.includes(word), `the host's disk has ${word}`);
    }
    assert.ok(disk.includes(id), "but it knows the session's id");

    const again = await connect(t, await host(t, home), { sessionFs: storage });
    assert.ok((await again.listSessions()).some((row) => row.sessionId === id));
    assert.equal(await again.getLastSessionId(), id);
    const resumed = await again.resumeSession(id, bring(shelf));
    assert.deepEqual(said(await resumed.getEvents()), ["wombat says hello"]);
    await resumed.sendAndWait({ prompt: script([{ say: "and again" }]) });
    assert.deepEqual(said(await resumed.getEvents()), ["wombat says hello", "and again"]);
});

test("sessions of other clients are not touched, and a session without a folder takes the storage's", async (t) => {
    const home = await folder(t);
    const client = await connect(t, await host(t, home), { sessionFs: storage });
    const shelf = new Shelf();
    const session = await client.createSession({ model: "scripted", ...bring(shelf) });
    await promisify(execFile)(GROVE, ["run", "--yes", script([{ say: "at home" }])], { env: surroundings(home) });
    const stored = async () => (await contents(join(home, "data", "session-state"))).includes("at home");
    await until("it lies where the host's sessions lie", stored);
    const rows = await client.listSessions();
    assert.deepEqual(rows.map((row) => row.sessionId), [session.sessionId], "and they are nobody's business here");
    assert.match(shelf.text(session.sessionId, "/state/workspace.yaml"), /^cwd: .*\/proj/m);
});

test("output that is too large lies in the client's temporary folder, word for word", async (t) => {
    const client = await connect(t, await host(t, await folder(t)), { sessionFs: storage });
    const shelf = new Shelf();
    const output = "x".repeat(100_000);
    const session = await client.createSession({
        model: "scripted",
        ...bring(shelf),
        tools: [{ name: "big", description: "", parameters: { type: "object" }, handler: async () => output }],
    });
    await session.sendAndWait({ prompt: script([{ clientTool: { name: "big" } }, { say: "ok" }]) });
    const spilled = [...shelf.files(session.sessionId).files].find(([name]) => name.startsWith("/state/temp/"));
    assert.equal(spilled?.[1], output);
});

test("a fork is written under its own id when it is resumed", async (t) => {
    const client = await connect(t, await host(t, await folder(t)), { sessionFs: storage });
    const shelf = new Shelf();
    const session = await client.createSession({ model: "scripted", ...bring(shelf) });
    await session.sendAndWait({ prompt: script([{ say: "first" }]) });
    await session.rpc.plan.update({ content: "the plan" });
    await session.sendAndWait({ prompt: script([{ say: "second" }]) });
    const whole = await client.rpc.sessions.fork({ sessionId: session.sessionId });
    assert.equal(shelf.sessions.has(whole.sessionId), false, "a record until it is resumed");
    const fork = await client.resumeSession(whole.sessionId, bring(shelf));
    assert.deepEqual(said(await fork.getEvents()), ["first", "second"]);
    assert.match(shelf.text(whole.sessionId, "/state/events.jsonl"), /second/);
    assert.equal(shelf.text(whole.sessionId, "/state/plan.md"), "the plan");

    const boundary = (await session.getEvents()).filter((event) => event.type === "user.message")[1];
    const half = await client.rpc.sessions.fork({ sessionId: session.sessionId, toEventId: boundary.id });
    const cut = await client.resumeSession(half.sessionId, bring(shelf));
    assert.deepEqual(said(await cut.getEvents()), ["first"]);
    assert.doesNotMatch(shelf.text(half.sessionId, "/state/events.jsonl"), /second/);

    await client.deleteSession(whole.sessionId);
    assert.ok(!(await client.listSessions()).some((row) => row.sessionId === whole.sessionId));
    assert.equal(shelf.text(whole.sessionId, "/state/events.jsonl"), undefined);
});

test("one client alone brings the storage, and before there are sessions", async (t) => {
    const at = await host(t, await folder(t));
    await connect(t, at, { sessionFs: storage });
    await assert.rejects(connect(t, at, { sessionFs: storage }), /Another client is already/);

    const late = await host(t, await folder(t));
    const plain = await connect(t, late);
    await plain.createSession({ model: "scripted", onPermissionRequest: approveAll });
    await assert.rejects(connect(t, late, { sessionFs: storage }), /while sessions are active/);
    const relative = { ...storage, initialCwd: "rel" };
    await assert.rejects(connect(t, await host(t, await folder(t)), { sessionFs: relative }), /absolute/);
});

test("a session that lies with its client does not move to another host, and nothing of it changes", async (t) => {
    const [home, far] = [await folder(t), await folder(t)];
    const at = await host(t, home);
    const there = await host(t, far);
    const shelf = new Shelf();
    const client = await connect(t, at, { sessionFs: storage });
    const session = await client.createSession({ model: "scripted", ...bring(shelf) });
    await session.sendAndWait({ prompt: script([{ say: "mine" }]) });
    const grove = (...args) => promisify(execFile)(GROVE, args, { env: surroundings(home) });
    await grove("hosts", "add", "lab", `unix:${join(far, "data", "host.sock")}`);
    const log = shelf.text(session.sessionId, "/state/events.jsonl");
    await assert.rejects(grove("move", `local/${session.sessionId}`, "lab"), (failed) => {
        assert.equal(failed.code, 1);
        assert.match(failed.stderr, /this session is stored by a client/);
        return true;
    });
    assert.equal(shelf.text(session.sessionId, "/state/events.jsonl"), log);
    const rows = JSON.parse((await grove("ls", "--json", "--host", "lab")).stdout).sessions;
    assert.deepEqual(rows, [], "and nothing of it is there");
    assert.ok(there.token);
    await session.sendAndWait({ prompt: script([{ say: "still mine" }]) });
    assert.deepEqual(said(await session.getEvents()), ["mine", "still mine"]);
});

test("a session with a replacement character is resumed, whatever its client counts as the size of a file", async (t) => {
    const home = await folder(t);
    const shelf = new Shelf();
    const counts = [(text) => text.length, () => 0, (text) => [...text].length];
    for (const [number, count] of counts.entries()) {
        const counting = (session) => {
            const files = shelf.provider(session);
            const stat = async (path) => {
                const found = await files.stat(path);
                return found.isFile ? { ...found, size: count(shelf.text(session.sessionId, path)) } : found;
            };
            return { ...files, stat };
        };
        const options = { onPermissionRequest: approveAll, createSessionFsProvider: counting };
        const at = await host(t, home);
        const client = await connect(t, at, { sessionFs: storage });
        const session = await client.createSession({ model: "scripted", ...options });
        const text = `a \ufffd b é 🌲 ${number}`;
        await session.sendAndWait({ prompt: script([{ say: text }]) });
        await client.stop();
        await at.stop();
        const again = await host(t, home);
        const returned = await connect(t, again, { sessionFs: storage });
        const resumed = await returned.resumeSession(session.sessionId, options);
        assert.deepEqual(said(await resumed.getEvents()), [text]);
        await resumed.sendAndWait({ prompt: script([{ say: "more" }]) });
        assert.equal(shelf.text(session.sessionId, "/state/events.jsonl").split("grove.turnEnd").length, 3);
        await returned.stop();
        await again.stop();
    }
});

test("the creation of a session and its first turn cost few calls", async (t) => {
    const at = await host(t, await folder(t));
    const shelf = new Shelf();
    const client = await connect(t, at, { sessionFs: storage });
    const session = await client.createSession({ model: "scripted", ...bring(shelf) });
    await session.sendAndWait({ prompt: script([{ say: "hello" }]) });
    // The manifest is written last.
    let before = -1;
    await until("nothing more is asked", async () => {
        const now = shelf.calls.length;
        await new Promise((resolve) => setTimeout(resolve, 300));
        const isQuiet = now === before;
        before = now;
        return isQuiet;
    });
    const calls = shelf.calls.map(({ name, args }) => `${name} ${args[0]}`);
    assert.ok(calls.length <= 30, `${calls.length}: ${calls.join("\n")}`);
});

test("a log that the Copilot CLI wrote is resumed with its turns, goes on, and is kept beside Grove's", async (t) => {
    const home = await folder(t);
    const shelf = new Shelf();
    const id = "11111111-2222-4333-8444-555555555555";
    const event = (type, data) => JSON.stringify({ type, data, id: `${type}-1`, timestamp: "2026-01-02T03:04:05.000Z", parentId: null });
    const start = { sessionId: id, version: 1, producer: "copilot-agent", copilotVersion: "1.0.102", startTime: "2026-01-02T03:04:00.000Z" };
    const call = { toolCallId: "c", name: "bash", arguments: { command: "ls" } };
    const original = [
        event("session.start", start),
        event("user.message", { content: "hello", messageId: "m1" }),
        event("assistant.turn_start", { turnId: "0" }),
        event("assistant.message", { messageId: "a1", content: "I look.", toolRequests: [call] }),
        event("tool.execution_start", { toolCallId: "c", toolName: "bash" }),
        event("tool.execution_complete", { toolCallId: "c", success: true, result: { content: "a.txt" } }),
        event("assistant.turn_end", { turnId: "0" }),
        "",
    ].join("\n");
    shelf.files(id).files.set("/state/events.jsonl", original);
    const at = await host(t, home);
    const client = await connect(t, at, { sessionFs: storage });
    const session = await client.resumeSession(id, bring(shelf));
    const types = (events) => events.filter(({ type }) => !type.startsWith("session.")).map(({ type }) => type);
    assert.deepEqual(types(await session.getEvents()), [
        "user.message",
        "assistant.turn_start",
        "assistant.message",
        "tool.execution_start",
        "tool.execution_complete",
        "assistant.turn_end",
    ]);
    await session.sendAndWait({ prompt: script([{ say: "and on" }]) });
    assert.deepEqual(said(await session.getEvents()), ["I look.", "and on"]);
    assert.equal(shelf.text(id, "/state/events.jsonl.copilot"), original);
    await client.stop();
    await at.stop();
    const again = await connect(t, await host(t, home), { sessionFs: storage });
    const resumed = await again.resumeSession(id, bring(shelf));
    assert.deepEqual(said(await resumed.getEvents()), ["I look.", "and on"]);
});
