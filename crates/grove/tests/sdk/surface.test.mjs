// The remaining requests about a session.

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { approveAll } from "@github/copilot-sdk";
import { connect, folder, host, script, until } from "./support.mjs";

const said = (list) => list.filter((event) => event.type === "assistant.message").map((event) => event.data.content);

async function begin(t, options = {}) {
    const at = await host(t, await folder(t));
    const client = await connect(t, at);
    const session = await client.createSession({ model: "scripted", onPermissionRequest: approveAll, ...options });
    return { at, client, session };
}

test("events are read from the start, from a cursor, backward, by type, and waited for", async (t) => {
    const { session } = await begin(t);
    await session.sendAndWait({ prompt: script([{ say: "one" }]) });
    const all = await session.rpc.eventLog.read({});
    assert.deepEqual(all.events.map((event) => event.type).slice(0, 2), ["session.start", "user.message"]);
    assert.equal(all.cursorStatus, "ok");
    const tail = await session.rpc.eventLog.tail();
    assert.equal(tail.cursor, all.cursor);
    assert.deepEqual((await session.rpc.eventLog.read({ cursor: tail.cursor })).events, []);
    const first = await session.rpc.eventLog.read({ max: 1 });
    assert.equal(first.hasMore, true);
    const second = await session.rpc.eventLog.read({ cursor: first.cursor, max: 1 });
    assert.equal(second.events[0].id, all.events[1].id);
    const backward = await session.rpc.eventLog.read({ direction: "backward", max: 2 });
    const stored = all.events.filter((event) => !event.ephemeral);
    assert.deepEqual(backward.events.map((event) => event.id), stored.slice(-2).map((event) => event.id));
    const waiting = session.rpc.eventLog.read({ cursor: tail.cursor, waitMs: 10_000, types: ["assistant.message"] });
    await session.sendAndWait({ prompt: script([{ say: "two" }]) });
    assert.deepEqual(said((await waiting).events), ["two"]);
    assert.equal((await session.rpc.eventLog.read({ cursor: "gone" })).cursorStatus, "expired");
});

test("a session goes back to an earlier message, and the log keeps what was left", async (t) => {
    const { client, session } = await begin(t);
    await session.sendAndWait({ prompt: script([{ say: "one" }]) });
    await session.sendAndWait({ prompt: script([{ say: "two" }]) });
    const points = await session.rpc.history.listRewindPoints();
    assert.equal(points.points.length, 2);
    const events = await session.getEvents();
    const boundary = events.filter((event) => event.type === "user.message")[1];
    const removed = await session.rpc.history.truncate({ eventId: boundary.id });
    assert.equal(removed.eventsRemoved, events.length - events.indexOf(boundary));
    assert.deepEqual(said(await session.getEvents()), ["one"]);
    await session.sendAndWait({ prompt: script([{ say: "three" }]) });
    assert.deepEqual(said(await session.getEvents()), ["one", "three"]);
    const first = (await session.getEvents()).find((event) => event.type === "user.message");
    assert.equal((await session.rpc.history.rewind({ eventId: first.id })).outcome, "success");
    assert.deepEqual(said(await session.getEvents()), []);
    await assert.rejects(session.rpc.history.truncate({ eventId: "nope" }), /event nope not found/i);
    assert.ok((await client.listSessions()).length > 0);
});

test("plan, files and checkpoints are read and changed, and no name leads out", async (t) => {
    const { session } = await begin(t);
    await session.sendAndWait({ prompt: script([{ say: "one" }]) });
    const { workspaces, plan } = session.rpc;
    assert.equal((await plan.read()).exists, false);
    const changed = [];
    session.on("session.plan_changed", (event) => changed.push(event.data.operation));
    await plan.update({ content: "# Plan" });
    await plan.delete();
    await until("both changes are told", () => changed.length === 2);
    assert.deepEqual(changed, ["create", "delete"]);
    await workspaces.createFile({ path: "notes/a.md", content: "hello" });
    assert.deepEqual((await workspaces.listFiles()).files, ["notes/a.md"]);
    assert.equal((await workspaces.readFile({ path: "notes/a.md" })).content, "hello");
    assert.equal((await workspaces.statFile({ path: "notes/a.md" })).size, 5);
    await workspaces.renamePath({ source: "notes/a.md", destination: "b.md" });
    assert.deepEqual((await workspaces.listFiles()).files, ["b.md"]);
    await workspaces.removePath({ path: "b.md" });
    assert.deepEqual((await workspaces.listFiles()).files, []);
    for (const path of ["../escaped.txt", "nested/../../../escaped.txt", "/absolute", "a\\..\\b"]) {
        await assert.rejects(workspaces.createFile({ path, content: "x" }), path);
    }
    assert.equal((await workspaces.getWorkspace()).workspace.id, session.sessionId);
    await session.rpc.history.compact({});
    const { checkpoints } = await workspaces.listCheckpoints();
    assert.equal(checkpoints.length, 1);
    assert.ok((await workspaces.readCheckpoint({ number: 1 })).content.length > 0);
    assert.equal((await workspaces.readCheckpoint({ number: 9 })).content, null);
    const pasted = await workspaces.saveLargePaste({ content: "x".repeat(100_000) });
    assert.match(pasted.saved.filename, /^paste-\d+\.txt$/);
});

test("name, model and mode are read and changed", async (t) => {
    const { client, session } = await begin(t);
    assert.equal((await session.rpc.name.get()).name, null);
    await session.rpc.name.set({ name: "my session" });
    assert.equal((await session.rpc.name.get()).name, "my session");
    assert.equal((await client.listSessions())[0].summary, "my session");
    assert.match((await session.rpc.model.getCurrent()).modelId, /^scripted/);
    await assert.rejects(session.rpc.model.setReasoningEffort({ reasoningEffort: "high" }), /no setting for the reasoning effort/);
    const told = [];
    const onEvent = (event) => told.push(event);
    const other = await client.createSession({ model: "no-such-model", onPermissionRequest: approveAll, onEvent });
    assert.equal((await other.rpc.model.getCurrent()).modelId, "no-such-model", "the name that was selected");
    await until("it is told that the default agent takes its place", () => told.find((event) => /Unknown model "no-such-model"/.test(event.data.message)));
    const start = told.find((event) => event.type === "session.start");
    assert.deepEqual(start, (await other.getEvents())[0], "the first event is the same live and read again");
    assert.equal(await session.rpc.mode.get(), "interactive");
});

test("a session works where it was told to, and is found by its folder and repository", async (t) => {
    const { client } = await begin(t);
    const at = await folder(t);
    const repository = join(at, "my project");
    await mkdir(join(repository, ".git"), { recursive: true });
    await writeFile(join(repository, ".git/HEAD"), "ref: refs/heads/topic\n");
    await writeFile(join(repository, ".git/config"), '[remote "origin"]\n\turl = https://example.org/owner/name.git\n');
    const session = await client.createSession({
        model: "scripted",
        workingDirectory: repository,
        onPermissionRequest: approveAll,
    });
    const ids = async (filter) => (await client.listSessions(filter)).map((row) => row.sessionId);
    const [row] = await client.listSessions({ workingDirectory: repository, cwd: repository });
    assert.equal(row.sessionId, session.sessionId);
    for (const filter of [{ gitRoot: repository }, { repository: "owner/name" }, { branch: "topic" }]) {
        assert.deepEqual(await ids(filter), [session.sessionId], JSON.stringify(filter));
    }
    assert.deepEqual(await ids({ branch: "main" }), []);
});

test("sessions that come, change and go are told to every client", async (t) => {
    const at = await host(t, await folder(t));
    const [one, two] = [await connect(t, at), await connect(t, at)];
    const told = [];
    two.onLifecycle((event) => told.push(`${event.type} ${event.sessionId}`));
    const session = await one.createSession({ model: "scripted", onPermissionRequest: approveAll });
    await session.rpc.name.set({ name: "named" });
    await one.deleteSession(session.sessionId);
    for (const kind of ["session.created", "session.updated", "session.deleted"]) {
        await until(kind, () => told.includes(`${kind} ${session.sessionId}`));
    }
});

test("a prompt waits for the one that runs, or goes into it", async (t) => {
    const { session } = await begin(t);
    const idle = [];
    session.on("session.idle", (event) => idle.push(event));
    await session.send({ prompt: script([{ sleepMs: 300 }, { say: "first" }]) });
    await session.send({ prompt: script([{ say: "second" }]), mode: "enqueue" });
    await until("both are over", async () => said(await session.getEvents()).length === 2);
    assert.deepEqual(said(await session.getEvents()), ["first", "second"]);
    await until("it is idle", () => idle.length > 0);
    assert.equal(idle.length, 1, "it is not idle between two prompts");
});

test("the tools of two clients are there together, and go with their client", async (t) => {
    const at = await host(t, await folder(t));
    const [one, two] = [await connect(t, at), await connect(t, at)];
    const tool = (name) => ({ name, description: "", parameters: { type: "object" }, handler: async () => `${name} ran` });
    const first = await one.createSession({ model: "scripted", tools: [tool("a")], onPermissionRequest: approveAll });
    const second = await two.resumeSession(first.sessionId, { tools: [tool("b")], onPermissionRequest: approveAll });
    await first.sendAndWait({ prompt: script([{ clientTool: { name: "a" } }, { clientTool: { name: "b" } }]) });
    const results = async () =>
        (await first.getEvents())
            .filter((event) => event.type === "tool.execution_complete")
            .map((event) => [event.data.success, event.data.result?.content]);
    assert.deepEqual(await results(), [
        [true, "a ran"],
        [true, "b ran"],
    ]);
    await second.disconnect();
    await first.sendAndWait({ prompt: script([{ clientTool: { name: "b" } }]) }).catch(() => {});
    assert.ok(!(await results()).slice(2).some(([success]) => success), "nobody runs it any more");
});

test("a question that waited is put to a client that comes later", async (t) => {
    const { at, session } = await begin(t);
    await session.send({ prompt: script([{ ask: "Still there?" }, { say: "good" }]) });
    await until("it waits", async () => (await session.rpc.metadata.isProcessing()).processing);
    const later = await connect(t, at);
    const asked = [];
    const other = await later.resumeSession(session.sessionId, {
        onPermissionRequest: approveAll,
        onUserInputRequest: (request) => {
            asked.push(request.question);
            return { answer: "yes", wasFreeform: true };
        },
    });
    await until("it is answered", async () => said(await other.getEvents()).includes("good"));
    assert.deepEqual(asked, ["Still there?"]);
});

test("a permission that waited is put to a client that comes later", async (t) => {
    const { at, session } = await begin(t, { onPermissionRequest: () => new Promise(() => {}) });
    const tool = { name: "shell", input: "ls", output: "x", permission: "shell" };
    await session.send({ prompt: script([{ tool }, { say: "good" }]) });
    await until("it waits", async () => (await session.rpc.permissions.pendingRequests()).items.length === 1);
    const later = await connect(t, at);
    const other = await later.resumeSession(session.sessionId, { onPermissionRequest: approveAll });
    await until("it is answered", async () => said(await other.getEvents()).includes("good"));
    assert.deepEqual((await session.rpc.permissions.pendingRequests()).items, []);
});

test("a session is closed twice, suspended and closed, shut down and closed", async (t) => {
    const { at, client, session } = await begin(t);
    const detach = () => client.connection.sendRequest("session.detach", { sessionId: session.sessionId });
    assert.deepEqual([await detach(), await detach()], [{ success: true }, { success: true }]);
    const suspended = await client.createSession({ model: "scripted", onPermissionRequest: approveAll });
    await suspended.rpc.suspend();
    await suspended.disconnect();
    const watcher = await connect(t, at);
    const ended = await client.createSession({ model: "scripted", onPermissionRequest: approveAll });
    const watching = await watcher.resumeSession(ended.sessionId, { onPermissionRequest: approveAll });
    const told = [];
    for (const seen of [ended, watching]) seen.on("session.shutdown", (event) => told.push(event.data.shutdownType));
    await ended.rpc.shutdown({});
    await until("both are told", () => told.length === 2);
    assert.deepEqual(told, ["routine", "routine"]);
    await ended.disconnect();
    assert.deepEqual(await client.stop(), []);
});

test("every model has the members that typed clients require", async (t) => {
    const { client } = await begin(t);
    const { models } = await client.rpc.models.list({});
    assert.ok(models.length > 0);
    for (const { id, name, capabilities } of models) {
        assert.deepEqual([typeof id, typeof name], ["string", "string"]);
        assert.equal(typeof capabilities.supports.vision, "boolean", id);
        assert.equal(typeof capabilities.supports.reasoningEffort, "boolean", id);
        assert.equal(typeof capabilities.limits.max_context_window_tokens, "number", id);
    }
});
