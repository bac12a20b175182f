// The SDK over TCP: everything that a program does with sessions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { approveAll, CopilotClient, defineTool, RuntimeConnection } from "@github/copilot-sdk";
import { connect, folder, host, script, until } from "./support.mjs";

test("a client with another token is refused, and one with the host's is not", async (t) => {
    const at = await host(t, await folder(t));
    const wrong = new CopilotClient({ connection: RuntimeConnection.forUri(at.copilot, { connectionToken: "x" }) });
    await assert.rejects(wrong.start(), /AUTHENTICATION_FAILED/);
    await wrong.forceStop();
    const client = await connect(t, at);
    const pong = await client.ping("hello");
    assert.match(pong.message, /hello/);
    assert.equal(pong.protocolVersion, 3);
    assert.equal((await client.getStatus()).protocolVersion, 3);
    assert.equal((await client.getAuthStatus()).isAuthenticated, true);
    assert.ok((await client.listModels()).some((model) => model.id === "scripted"));
});

test("text is streamed, told whole, and read again", async (t) => {
    const client = await connect(t, await host(t, await folder(t)));
    const session = await client.createSession({ model: "scripted", streaming: true, onPermissionRequest: approveAll });
    const heard = [];
    session.on((event) => heard.push(event));
    const last = await session.sendAndWait({ prompt: script([{ reason: "hm" }, { say: "one two three", chunks: 3 }]) });
    assert.equal(last.data.content, "one two three");
    const deltas = heard.filter((event) => event.type === "assistant.message_delta");
    assert.equal(deltas.map((event) => event.data.deltaContent).join(""), "one two three");
    assert.ok(deltas.every((event) => event.ephemeral === true));
    const kept = (await session.getEvents()).filter((event) => event.type !== "session.resume");
    assert.deepEqual(
        kept.map((event) => event.type),
        ["session.start", "user.message", "assistant.turn_start", "assistant.message", "assistant.turn_end"],
    );
    // The stored events are a chain, and the same as the live ones.
    kept.slice(1).forEach((event, n) => assert.equal(event.parentId, kept[n].id));
    const told = heard.filter((event) => !event.ephemeral).map((event) => event.id);
    assert.deepEqual(told, kept.slice(1).map((event) => event.id));
});

test("a permission is asked for, and its answer counts", async (t) => {
    const client = await connect(t, await host(t, await folder(t)));
    const asked = [];
    const tool = { name: "shell", input: { command: "ls" }, output: "README.md", permission: "shell" };
    const approving = await client.createSession({
        model: "scripted",
        onPermissionRequest: (request) => {
            asked.push(request);
            return { kind: "approve-once" };
        },
    });
    await approving.sendAndWait({ prompt: script([{ tool }, { say: "done" }]) });
    assert.equal(asked.length, 1);
    assert.equal(asked[0].kind, "shell");
    const complete = (await approving.getEvents()).find((event) => event.type === "tool.execution_complete");
    assert.equal(complete.data.success, true);
    assert.match(complete.data.result.content, /README/);

    const refusing = await client.createSession({ model: "scripted", onPermissionRequest: () => ({ kind: "reject" }) });
    await refusing.sendAndWait({ prompt: script([{ tool }, { say: "done" }]) });
    const refused = (await refusing.getEvents()).find((event) => event.type === "tool.execution_complete");
    assert.equal(refused.data.success, false);
});

test("a tool of the client is run by the client", async (t) => {
    const client = await connect(t, await host(t, await folder(t)));
    const seen = [];
    const look = defineTool("look", {
        description: "looks",
        parameters: { type: "object", properties: { at: { type: "string" } } },
        handler: async (args) => {
            seen.push(args);
            return `saw ${args.at}`;
        },
    });
    const session = await client.createSession({ model: "scripted", tools: [look], onPermissionRequest: approveAll });
    await session.sendAndWait({ prompt: script([{ clientTool: { name: "look", input: { at: "x" } } }, { say: "ok" }]) });
    assert.deepEqual(seen, [{ at: "x" }]);
    const complete = (await session.getEvents()).find((event) => event.type === "tool.execution_complete");
    assert.match(complete.data.result.content, /saw x/);
});

test("the agent's questions are put to the client's user", async (t) => {
    const client = await connect(t, await host(t, await folder(t)));
    const asked = [];
    const session = await client.createSession({
        model: "scripted",
        onPermissionRequest: approveAll,
        onUserInputRequest: (request) => {
            asked.push(request.question);
            return { answer: "blue", wasFreeform: true };
        },
    });
    await session.sendAndWait({ prompt: script([{ ask: "Which colour?" }, { say: "ok" }]) });
    assert.deepEqual(asked, ["Which colour?"]);
});

test("abort ends a turn, and the next one runs", async (t) => {
    const client = await connect(t, await host(t, await folder(t)));
    const session = await client.createSession({ model: "scripted", onPermissionRequest: approveAll });
    const idle = [];
    session.on("session.idle", (event) => idle.push(event.data));
    await session.send({ prompt: script([{ say: "begun" }, { hang: true }]) });
    await until("the turn runs", async () => (await session.getEvents()).length > 1 || idle.length === 0);
    await session.abort();
    await until("the session is idle", () => idle.length === 1);
    assert.equal(idle[0].aborted, true);
    const last = await session.sendAndWait({ prompt: script([{ say: "again" }]) });
    assert.equal(last.data.content, "again");
});

test("two clients see one session, and the first answer wins", async (t) => {
    const at = await host(t, await folder(t));
    const [one, two] = [await connect(t, at), await connect(t, at)];
    let release;
    const held = new Promise((resolve) => (release = resolve));
    const first = await one.createSession({ model: "scripted", streaming: true, onPermissionRequest: () => held });
    const second = await two.resumeSession(first.sessionId, { streaming: true, onPermissionRequest: approveAll });
    // That the second one resumed it is told to both, and may arrive before either listens.
    const [a, b] = [[], []];
    for (const [session, heard] of [[first, a], [second, b]]) {
        session.on((event) => event.type !== "session.resume" && heard.push(event));
    }
    const tool = { name: "shell", input: "ls", output: "x", permission: "shell" };
    await second.sendAndWait({ prompt: script([{ say: "hello", chunks: 2 }, { tool }, { say: "bye" }]) });
    await until("both have heard the end", () => a.at(-1)?.type === "session.idle" && b.at(-1)?.type === "session.idle");
    assert.deepEqual(a, b);
    release({ kind: "reject" });
});

test("sessions are listed, found, forked and removed, and are there after a restart", async (t) => {
    const home = await folder(t);
    const at = await host(t, home);
    const client = await connect(t, at);
    const session = await client.createSession({ model: "scripted", onPermissionRequest: approveAll });
    await session.sendAndWait({ prompt: script([{ title: "first" }, { say: "alpha" }]) });
    await session.sendAndWait({ prompt: script([{ say: "beta" }]) });
    const id = session.sessionId;
    assert.equal((await client.listSessions()).find((row) => row.sessionId === id)?.summary, "first");
    assert.equal(await client.getLastSessionId(), id);
    assert.equal((await client.getSessionMetadata(id)).sessionId, id);

    const events = await session.getEvents();
    const boundary = events.filter((event) => event.type === "user.message")[1];
    const forked = await client.rpc.sessions.fork({ sessionId: id, toEventId: boundary.id, name: "half" });
    assert.equal(forked.name, "half");
    const half = await client.resumeSession(forked.sessionId, { onPermissionRequest: approveAll });
    const said = (list) => list.filter((event) => event.type === "assistant.message").map((event) => event.data.content);
    assert.deepEqual(said(await half.getEvents()), ["alpha"]);
    await assert.rejects(client.rpc.sessions.fork({ sessionId: id, toEventId: "nope" }), /event nope not found/i);

    await session.disconnect();
    await client.stop();
    await at.stop();
    const again = await connect(t, await host(t, home));
    const resumed = await again.resumeSession(id, { onPermissionRequest: approveAll });
    assert.deepEqual(said(await resumed.getEvents()), ["alpha", "beta"]);
    await assert.rejects(again.resumeSession("nobody", { onPermissionRequest: approveAll }), /Session not found: nobody/);
    await again.deleteSession(forked.sessionId);
    assert.ok(!(await again.listSessions()).some((row) => row.sessionId === forked.sessionId));
});
