// Failing storage of a storage client: nothing confirmed is lost, and the user sees the error.

import assert from "node:assert/strict";
import { test } from "node:test";
import { approveAll } from "@github/copilot-sdk";
import { connect, folder, host, script, Shelf, storage, until } from "./support.mjs";

const bring = (shelf) => ({ onPermissionRequest: approveAll, createSessionFsProvider: shelf.provider });
const said = (list) => list.filter((event) => event.type === "assistant.message").map((event) => event.data.content);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const isLog = (args) => args[0].endsWith("/events.jsonl");

async function begin(t) {
    const at = await host(t, await folder(t));
    const shelf = new Shelf();
    const client = await connect(t, at, { sessionFs: storage });
    const session = await client.createSession({ model: "scripted", streaming: true, ...bring(shelf) });
    const heard = [];
    session.on((event) => heard.push({ ...event, heard: Date.now() }));
    return { at, shelf, client, session, heard };
}

test("idle is told after a slow append, and text before it", async (t) => {
    const { shelf, session, heard } = await begin(t);
    let appended;
    shelf.fault = async (name, args) => {
        if (name === "appendFile" && isLog(args)) {
            await pause(500);
            appended = Date.now();
        }
    };
    await session.sendAndWait({ prompt: script([{ say: "slowly" }]) });
    const at = (type) => heard.find((event) => event.type === type).heard;
    assert.ok(at("assistant.message_delta") < appended, "text does not wait for the disk");
    assert.ok(at("session.idle") >= appended, "idle means durable");
});

test("a tool runs only when its permission is on record", async (t) => {
    const { shelf, session, heard } = await begin(t);
    const recorded = [];
    shelf.fault = async (name, args) => {
        if (name === "appendFile" && isLog(args)) {
            await pause(300);
            recorded.push({ text: args[1], at: Date.now() });
        }
    };
    const tool = { name: "shell", input: "ls", output: "x", permission: "shell" };
    await session.sendAndWait({ prompt: script([{ tool }, { say: "ok" }]) });
    const record = recorded.find((one) => /permission/i.test(one.text));
    const complete = heard.find((event) => event.type === "tool.execution_complete");
    assert.ok(record && complete.heard >= record.at);
});

for (const [how, fail] of [
    ["an error result", () => Object.assign(new Error("disk full"), { code: "ENOSPC" })],
    ["a missing folder", () => Object.assign(new Error("no such folder"), { code: "ENOENT" })],
]) {
    test(`an append that fails with ${how} is told, tried again, and loses nothing`, async (t) => {
        const { shelf, session, heard } = await begin(t);
        let failures = 0;
        shelf.fault = async (name, args) => {
            if (name === "appendFile" && isLog(args) && failures < 3) {
                failures += 1;
                throw fail();
            }
        };
        await session.send({ prompt: script([{ say: "stubborn" }]) });
        await until("the person is told", () =>
            heard.some((event) => event.type === "session.error" && event.data.errorType === "persistence"),
        );
        assert.ok(!heard.some((event) => event.type === "session.idle"), "nothing is idle that is not stored");
        await until("it is stored after all", () => heard.some((event) => event.type === "session.idle"));
        assert.equal(shelf.text(session.sessionId, "/state/events.jsonl").split("stubborn").length - 1, 2, "prompt and answer, once");
        shelf.fault = async () => {};
        await session.sendAndWait({ prompt: script([{ say: "next" }]) });
        assert.deepEqual(said(await session.getEvents()), ["stubborn", "next"]);
    });
}

test("a client that goes in the middle of a turn and comes back finds everything", async (t) => {
    const { at, shelf, client, session } = await begin(t);
    await session.sendAndWait({ prompt: script([{ say: "before" }]) });
    await session.send({ prompt: script([{ say: "during" }, { sleepMs: 300 }, { say: " and after" }]) });
    await pause(100);
    await client.forceStop();
    await pause(500);
    const other = await connect(t, at);
    await assert.rejects(other.createSession({ model: "scripted", onPermissionRequest: approveAll }), /provider/);
    const back = await connect(t, at, { sessionFs: storage });
    const resumed = await back.resumeSession(session.sessionId, bring(shelf));
    await until("the turn is stored", () => /and after/.test(shelf.text(session.sessionId, "/state/events.jsonl")));
    await until("it is idle", async () => !(await resumed.rpc.metadata.isProcessing()).processing);
    assert.deepEqual(said(await resumed.getEvents()), ["before", "during and after"]);
    await resumed.sendAndWait({ prompt: script([{ say: "on" }]) });
    assert.deepEqual(said(await resumed.getEvents()), ["before", "during and after", "on"]);
});

test("torn and damaged logs give what they hold", async (t) => {
    const home = await folder(t);
    const at = await host(t, home);
    const shelf = new Shelf();
    const client = await connect(t, at, { sessionFs: storage });
    const session = await client.createSession({ model: "scripted", ...bring(shelf) });
    const id = session.sessionId;
    await session.sendAndWait({ prompt: script([{ say: "one" }]) });
    await session.sendAndWait({ prompt: script([{ say: "two" }]) });
    await client.stop();
    await at.stop();
    const { files } = shelf.files(id);
    const log = files.get("/state/events.jsonl");
    const last = JSON.parse(log.trimEnd().split("\n").findLast((line) => !line.includes('"custom"'))).id;
    let next = await host(t, home);
    for (const [how, damaged] of [
        ["a torn end", `${log}{"type":"mess`],
        ["zeros at the end", log + "\u0000".repeat(64)],
        ["no newline at the end", log.trimEnd()],
        ["a line that is none", log.replace("\n", "\nnot a line\n")],
        ["a line of an unknown type", `${log}{"type":"of-the-future","id":"zz","parentId":"${last}"}\n`],
    ]) {
        files.set("/state/events.jsonl", damaged);
        const again = await connect(t, next, { sessionFs: storage });
        const resumed = await again.resumeSession(id, bring(shelf));
        assert.deepEqual(said(await resumed.getEvents()), ["one", "two"], how);
        await again.stop();
        await next.stop();
        next = await host(t, home);
    }
    files.delete("/state/events.jsonl");
    files.delete("/state/session.json");
    const again = await connect(t, next, { sessionFs: storage });
    await assert.rejects(again.resumeSession(id, bring(shelf)), /neither a session.json nor an events.jsonl/);
});

test("a client without storage for a session is told so, and the host's disk is no way out", async (t) => {
    const home = await folder(t);
    const at = await host(t, home);
    await connect(t, at, { sessionFs: storage });
    const other = await connect(t, at);
    await assert.rejects(
        other.createSession({ model: "scripted", onPermissionRequest: approveAll }),
        /No session found|storage client/,
    );
});
