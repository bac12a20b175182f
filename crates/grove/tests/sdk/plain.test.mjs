// The requests that a plain program makes beside talking: messages for people, metadata, usage, commands, the queue.

import assert from "node:assert/strict";
import { join } from "node:path";
import { mkdir } from "node:fs/promises";
import { test } from "node:test";
import { approveAll } from "@github/copilot-sdk";
import { connect, folder, host, script, until } from "./support.mjs";

async function begin(t, options = {}) {
    const at = await host(t, await folder(t));
    const client = await connect(t, at);
    const session = await client.createSession({ model: "scripted", onPermissionRequest: approveAll, ...options });
    const told = [];
    session.on((event) => told.push(event));
    return { at, client, session, told };
}

const kept = (events) => events.filter((event) => !event.ephemeral).map(({ id, type, data }) => ({ id, type, data }));

test("what happens outside of turns is told, and is the same when it is read again, also after a restart", async (t) => {
    const home = await folder(t);
    const at = await host(t, home);
    const client = await connect(t, at);
    const session = await client.createSession({ model: "scripted", onPermissionRequest: approveAll });
    const told = [];
    session.on((event) => told.push(event));
    await session.log("before the first turn");
    await session.rpc.plan.update({ content: "# Plan" });
    await session.sendAndWait({ prompt: script([{ say: "one" }]) });
    await session.log("look", { level: "warning" });
    await session.log("gone at once", { ephemeral: true });
    await session.rpc.plan.delete();
    await session.sendAndWait({ prompt: script([{ say: "two" }]) });
    await session.rpc.history.compact({});
    await session.log("failed", { level: "error" });
    await until("all is told", () => told.some((event) => event.data.message === "failed"));
    const read = await session.getEvents();
    assert.deepEqual(kept(read).slice(1), kept(told));
    read.slice(1).forEach((event, n) => assert.equal(event.parentId, read[n].id));
    const types = kept(read).map(({ type, data }) => (data.message ? `${type} ${data.message}` : type));
    assert.deepEqual(types.filter((type) => /^session/.test(type)), [
        "session.start",
        "session.info before the first turn",
        "session.plan_changed",
        "session.warning look",
        "session.plan_changed",
        "session.compaction_complete",
        "session.error failed",
    ]);
    assert.deepEqual(told.find((event) => event.data.message === "gone at once").data, {
        infoType: "notification",
        message: "gone at once",
    });
    await client.stop();
    await at.stop();
    const again = await connect(t, await host(t, home));
    const resumed = await again.resumeSession(session.sessionId, { onPermissionRequest: approveAll });
    const after = kept(await resumed.getEvents());
    assert.deepEqual(after.slice(0, -1), kept(read));
    assert.equal(after.at(-1).type, "session.resume");
    assert.equal(after.at(-1).data.eventCount, 2);
});

test("a session goes back to a message that a program logged, which stays", async (t) => {
    const { session } = await begin(t);
    await session.sendAndWait({ prompt: script([{ say: "one" }]) });
    const { eventId } = await session.rpc.log({ message: "here" });
    await session.sendAndWait({ prompt: script([{ say: "two" }]) });
    assert.ok((await session.getEvents()).some((event) => event.id === eventId));
    const removed = await session.rpc.history.truncate({ eventId });
    assert.equal(removed.eventsRemoved, 4);
    assert.equal((await session.getEvents()).at(-1).id, eventId);
});

test("metadata and folders are what the session has", async (t) => {
    const { session, told } = await begin(t);
    const { metadata, tools, plan } = session.rpc;
    const other = join(await folder(t), "other");
    await mkdir(other);
    const before = await metadata.snapshot();
    assert.deepEqual(
        [before.sessionId, before.currentMode, before.isRemote, before.alreadyInUse, before.workspace.id],
        [session.sessionId, "interactive", false, false, session.sessionId],
    );
    assert.ok(before.workspacePath && !Number.isNaN(Date.parse(before.startTime)));
    assert.deepEqual(await metadata.activity(), { abortable: false, hasActiveWork: false });
    await metadata.setWorkingDirectory({ workingDirectory: other });
    assert.equal((await metadata.snapshot()).workingDirectory, other);
    const context = { cwd: other, gitRoot: "/g", branch: "b", repository: "o/n", repositoryHost: "h", hostType: "github" };
    await metadata.recordContextChange({ context });
    await until("it is told", () => told.some((event) => event.type === "session.context_changed"));
    assert.deepEqual(told.find((event) => event.type === "session.context_changed").data, context);
    await session.rpc.mode.set({ mode: "interactive" });
    await session.rpc.mode.set({ mode: "plan" });
    assert.equal(await session.rpc.mode.get(), "plan");
    assert.equal((await metadata.snapshot()).currentMode, "plan");
    const changed = told.find((event) => event.type === "session.mode_changed");
    assert.deepEqual(changed.data, { previousMode: "interactive", newMode: "plan" });
    await until("it is told that it changes nothing", () => told.some((event) => event.data.warningType === "mode"));
    await assert.rejects(session.rpc.mode.set({ mode: "no-such" }), /"no-such" is not a mode/);
    assert.deepEqual((await tools.getCurrentMetadata()).tools, []);
    assert.deepEqual((await plan.readSqlTodos()).rows, []);
    await assert.rejects(session.rpc.name.set({ name: " \t" }), /empty/);
    assert.equal((await session.rpc.name.setAuto({ summary: "  by itself " })).applied, true);
    assert.equal((await session.rpc.name.get()).name, "by itself");
    await session.rpc.name.set({ name: "by hand" });
    assert.equal((await session.rpc.name.setAuto({ summary: "no more" })).applied, false);
});

test("usage and changes of files are counted from the turns, also when a session is shut down", async (t) => {
    const { session, told } = await begin(t);
    const usage = { inputTokens: 100, outputTokens: 20 };
    await session.sendAndWait({ prompt: script([{ say: "one" }, { usage }]) });
    await session.sendAndWait({ prompt: script([{ say: "two" }, { usage }]) });
    const metrics = await session.rpc.usage.getMetrics();
    assert.equal(metrics.totalUserRequests, 2);
    const [model] = Object.values(metrics.modelMetrics);
    assert.deepEqual([model.requests.count, model.usage.inputTokens, model.usage.outputTokens], [2, 200, 40]);
    assert.deepEqual([metrics.lastCallInputTokens, metrics.lastCallOutputTokens], [100, 20]);
    await session.rpc.shutdown({ reason: "enough" });
    const shutdown = () => told.find((event) => event.type === "session.shutdown");
    await until("it is told", shutdown);
    assert.equal(shutdown().data.shutdownType, "routine");
    assert.deepEqual(shutdown().data.modelMetrics, metrics.modelMetrics);
    assert.deepEqual(shutdown().data.codeChanges, { linesAdded: 0, linesRemoved: 0, filesModified: [] });
});

test("files of the workspace are told of, and a long text is stored", async (t) => {
    const { session, told } = await begin(t);
    const { workspaces } = session.rpc;
    for (const content of ["one", "two"]) await workspaces.createFile({ path: "notes.md", content });
    const changes = () => told.filter((event) => event.type === "session.workspace_file_changed").map(({ data }) => data);
    await until("both are told", () => changes().length === 2);
    assert.deepEqual(changes(), [
        { path: "notes.md", operation: "create" },
        { path: "notes.md", operation: "update" },
    ]);
    await assert.rejects(workspaces.readFile({ path: "../x" }), /workspace files directory/);
    const { saved } = await workspaces.saveLargePaste({ content: "short" });
    assert.equal((await workspaces.readFile({ path: saved.filename })).content, "short");
    const diff = await workspaces.diff({ mode: "branch" });
    assert.deepEqual([diff.requestedMode, diff.changes, diff.unavailableReason], ["branch", [], "file-change-tracking-disabled"]);
});

test("messages wait in the queue, where they are moved, changed and removed", async (t) => {
    const { session } = await begin(t);
    const { queue } = session.rpc;
    const texts = async () => (await queue.pendingItems()).items.map((item) => item.displayText);
    assert.deepEqual(await queue.pendingItems(), { items: [], steeringMessages: [] });
    assert.equal((await queue.removeMostRecent()).removed, false);
    await session.send({ prompt: script([{ hang: true }]) });
    for (const prompt of ["a", "b"]) await session.send({ prompt });
    const { id } = await queue.insertAt({ position: 0, message: { prompt: "c" } });
    assert.deepEqual(await texts(), ["c", "a", "b"]);
    assert.equal((await queue.moveItem({ id, toPosition: 9 })).changed, true);
    assert.equal((await queue.updateText({ id, prompt: "C" })).updated, true);
    assert.deepEqual(await texts(), ["a", "b", "C"]);
    const [first] = (await queue.pendingItems()).items;
    await queue.duplicateAt({ id: first.id });
    assert.deepEqual(await texts(), ["a", "a", "b", "C"]);
    assert.equal((await queue.removeAt({ id: first.id })).removed, true);
    assert.equal((await queue.removeAt({ id: "none" })).removed, false);
    assert.equal((await queue.removeMostRecent()).removed, true);
    assert.deepEqual(await texts(), ["a", "b"]);
    await queue.clear();
    assert.deepEqual(await texts(), []);
    assert.equal((await session.rpc.interruptMainTurn({})).interrupted, true);
});

test("commands of clients are listed, told of, run by their client, and gone with it", async (t) => {
    const { at, client, session, told } = await begin(t);
    const ran = [];
    const deploy = { name: "deploy", description: "Deploy the app", handler: async (context) => void ran.push(context) };
    const fail = {
        name: "fail",
        handler: async () => {
            throw new Error("no way");
        },
    };
    const other = await connect(t, at);
    const joined = await other.resumeSession(session.sessionId, {
        onPermissionRequest: approveAll,
        commands: [deploy, fail],
        suppressResumeEvent: true,
    });
    const changed = () => told.filter((event) => event.type === "commands.changed").map((event) => event.data.commands);
    await until("it is told", () => changed().length === 1);
    assert.deepEqual(changed()[0], [{ name: "deploy", description: "Deploy the app" }, { name: "fail", description: "" }]);
    const { commands } = session.rpc;
    const listed = (await commands.list()).commands.map(({ name, kind }) => `${kind} ${name}`);
    assert.ok(listed.includes("client deploy") && listed.includes("builtin compact"), `${listed}`);
    assert.deepEqual(await commands.execute({ commandName: "deploy", args: "production" }), {});
    assert.equal(ran.length, 1);
    assert.deepEqual([ran[0].command, ran[0].args], ["/deploy production", "production"]);
    assert.match((await commands.execute({ commandName: "fail", args: "" })).error, /no way/);
    assert.equal((await commands.invoke({ name: "model" })).kind, "text");
    await assert.rejects(commands.execute({ commandName: "nothing", args: "" }), /offers the command \/nothing/);
    await joined.disconnect();
    await until("it is told again", () => changed().length === 2);
    assert.deepEqual(changed()[1], []);
    assert.ok(client);
});

test("queued commands are put to the clients one after another", async (t) => {
    const { session, told } = await begin(t);
    const { commands, queue } = session.rpc;
    const asked = () => told.filter((event) => event.type === "command.queued").map((event) => event.data);
    for (const command of ["/first", "/second"]) assert.deepEqual(await commands.enqueue({ command }), { queued: true });
    await until("the first is asked about", () => asked().length === 1);
    const items = async () => (await queue.pendingItems()).items.map(({ kind, displayText }) => `${kind} ${displayText}`);
    assert.deepEqual(await items(), ["command /second"]);
    const respond = (requestId, result) => commands.respondToQueuedCommand({ requestId, result });
    assert.equal((await respond("missing", { handled: true })).success, false);
    assert.equal((await respond(asked()[0].requestId, { handled: true })).success, true);
    await until("the second is asked about", () => asked().length === 2);
    assert.equal((await respond(asked()[1].requestId, { handled: true, stopProcessingQueue: true })).success, true);
    assert.deepEqual(await items(), []);
});

test("a form goes to the clients that show forms, whose coming and going is told", async (t) => {
    const { at, session, told } = await begin(t);
    assert.equal(session.capabilities.ui.elicitation, false);
    const form = { message: "Which?", requestedSchema: { type: "object", properties: { answer: { type: "string" } } } };
    await assert.rejects(session.rpc.ui.elicitation(form), /no client of this session shows forms/);
    const shown = [];
    const other = await connect(t, at);
    const joined = await other.resumeSession(session.sessionId, {
        onPermissionRequest: approveAll,
        onElicitationRequest: (context) => {
            shown.push(context.message);
            return { action: "accept", content: { answer: "blue" } };
        },
        suppressResumeEvent: true,
    });
    assert.equal(joined.capabilities.ui.elicitation, true);
    await until("it is told", () => session.capabilities.ui.elicitation === true);
    const answer = await session.rpc.ui.elicitation(form);
    assert.deepEqual([answer.action, answer.content.answer, shown], ["accept", "blue", ["Which?"]]);
    const late = { requestId: "missing", result: { action: "cancel" } };
    assert.equal((await session.rpc.ui.handlePendingElicitation(late)).success, false);
    await other.forceStop();
    await until("it is told again", () => session.capabilities.ui.elicitation === false);
    assert.equal(told.filter((event) => event.type === "capabilities.changed").length, 2);
});

test("attachments and the mode of a message are read as they were sent", async (t) => {
    const { session } = await begin(t);
    const attachments = [
        { type: "file", path: "/p/a.txt", displayName: "a.txt", lineRange: { start: 1, end: 3 } },
        { type: "directory", path: "/p", displayName: "p" },
        {
            type: "selection",
            filePath: "/p/b.cs",
            displayName: "b.cs",
            text: "x = 1",
            selection: { start: { line: 1, character: 10 }, end: { line: 1, character: 15 } },
        },
        { type: "blob", data: "aGk=", mimeType: "text/plain", displayName: "hi" },
        { type: "github_reference", number: 7, referenceType: "issue", state: "open", title: "T", url: "https://e.org/7" },
    ];
    await session.sendAndWait({ prompt: script([{ say: "ok" }]), attachments, agentMode: "plan" });
    const { data } = (await session.getEvents()).find((event) => event.type === "user.message");
    assert.deepEqual(data.attachments, attachments);
    assert.equal(data.agentMode, "plan");
});

test("sessions are listed, found, measured and deleted by the host's own methods", async (t) => {
    const { client, session } = await begin(t);
    const { sessions } = client.rpc;
    const id = session.sessionId;
    await session.sendAndWait({ prompt: script([{ title: "first" }, { say: "one" }]) });
    await sessions.save({ sessionId: id });
    assert.deepEqual((await sessions.list({})).sessions.map((row) => [row.sessionId, row.isRemote]), [[id, false]]);
    assert.deepEqual((await sessions.list({ source: "remote" })).sessions, []);
    assert.equal((await client.connection.sendRequest("sessions.getMetadata", { sessionId: id })).session.name, "first");
    assert.equal((await sessions.findByPrefix({ prefix: id.slice(0, 8) })).sessionId, id);
    assert.equal((await sessions.findByPrefix({ prefix: "nothing" })).sessionId, undefined);
    assert.equal((await sessions.getLastForContext({})).sessionId, id);
    assert.ok((await sessions.getSizes()).sizes[id] > 0);
    assert.deepEqual(await sessions.checkInUse({ sessionIds: [id, "nobody"] }), { inUse: [] });
    const now = new Date().toISOString();
    const row = { sessionId: id, startTime: now, modifiedTime: now, isRemote: false, context: { cwd: "/x" } };
    assert.equal((await sessions.enrichMetadata({ sessions: [row] })).sessions[0].name, "first");
    await session.disconnect();
    await assert.rejects(session.getEvents(), /Session not found/);
    const prune = await sessions.pruneOld({ olderThanDays: 0, dryRun: true, includeNamed: true });
    assert.deepEqual([prune.candidates, prune.deleted, prune.dryRun], [[id], [], true]);
    const { freedBytes } = await sessions.bulkDelete({ sessionIds: [id, "nobody"] });
    assert.ok(freedBytes[id] > 0 && freedBytes.nobody === 0);
    assert.deepEqual((await sessions.list({})).sessions, []);
    await assert.rejects(sessions.setAdditionalPlugins({ plugins: [{ name: "x" }] }), /no plugins/);
});

test("events that are not stored are read while they are new", async (t) => {
    const { session } = await begin(t);
    const tail = await session.rpc.eventLog.tail();
    await session.log("short-lived", { ephemeral: true });
    const stored = { cursor: tail.cursor, includeEphemeral: false };
    assert.deepEqual((await session.rpc.eventLog.read(stored)).events, []);
    const types = ["session.title_changed"];
    const reading = session.rpc.eventLog.read({ cursor: tail.cursor, waitMs: 10_000, types });
    await session.rpc.name.set({ name: "new title" });
    assert.deepEqual((await reading).events.map((event) => event.data.title), ["new title"]);
    await session.rpc.plan.update({ content: "# Plan" });
    assert.deepEqual((await session.rpc.eventLog.read(stored)).events.map((event) => event.type), ["session.plan_changed"]);
});

test("a prompt is answered at its turn's end, or with the error that ended it", async (t) => {
    const { client, session } = await begin(t);
    const ask = (...steps) =>
        client.connection.sendRequest("session.sendAndWait", { sessionId: session.sessionId, prompt: script(steps) });
    const { messageId, response } = await ask({ say: "one" }, { sleepMs: 50 });
    assert.ok(messageId);
    assert.equal(response.data.content, "one");
    await assert.rejects(ask({ fail: "no more" }), /no more/);
});
