// The SDK starts Grove like its own CLI.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { test } from "node:test";
import { approveAll, CopilotClient, RuntimeConnection } from "@github/copilot-sdk";
import { finally_, folder, GROVE, script, Shelf, storage, surroundings, until } from "./support.mjs";

const run = promisify(execFile);

async function spawned(t, home, connection, options = {}) {
    const client = new CopilotClient({ connection, env: surroundings(home), useLoggedInUser: false, ...options });
    finally_(t, async () => {
        await client.stop();
    });
    await client.start();
    return client;
}

/** A home whose host, which outlives the SDK's program, ends with the test. */
async function home(t) {
    const path = await folder(t);
    finally_(t, () => run(GROVE, ["stop"], { env: surroundings(path) }).catch(() => {}));
    return path;
}

for (const [how, connection] of [
    ["stdio", RuntimeConnection.forStdio({ path: GROVE, args: ["copilot"] })],
    ["tcp", RuntimeConnection.forTcp({ path: GROVE, args: ["copilot"] })],
    ["stdio, without a word of its own", RuntimeConnection.forStdio({ path: GROVE })],
]) {
    test(`a program that the SDK starts is the host's (${how})`, async (t) => {
        const at = await home(t);
        const client = await spawned(t, at, connection);
        const session = await client.createSession({ model: "scripted", streaming: true, onPermissionRequest: approveAll });
        const last = await session.sendAndWait({ prompt: script([{ say: "hello there", chunks: 2 }]) });
        assert.equal(last.data.content, "hello there");
        await session.disconnect();
        await client.stop();
        // The session is the host's: other clients see it, and so does the next program.
        const { stdout } = await run(GROVE, ["ls", "--json"], { env: surroundings(at) });
        assert.ok(stdout.includes(session.sessionId));
        const again = await spawned(t, at, connection);
        const resumed = await again.resumeSession(session.sessionId, { onPermissionRequest: approveAll });
        assert.ok((await resumed.getEvents()).some((event) => event.data.content === "hello there"));
    });
}

test("options of the Copilot CLI do not end the program, and its working directory is the sessions'", async (t) => {
    const at = await home(t);
    const workingDirectory = join(at, "my project");
    await mkdir(workingDirectory);
    const args = ["--yolo", "--experimental", "--server", "--model", "gpt-5"];
    const connection = RuntimeConnection.forStdio({ path: GROVE, args });
    const client = await spawned(t, at, connection, { workingDirectory, logLevel: "debug" });
    const session = await client.createSession({ model: "gpt-5", onPermissionRequest: approveAll });
    const [row] = await client.listSessions();
    assert.deepEqual([row.sessionId, row.context.workingDirectory ?? row.context.cwd], [session.sessionId, workingDirectory]);
});

test("where the program was started with --yolo nobody is asked, and a rule that denies still denies", async (t) => {
    const at = await home(t);
    const client = await spawned(t, at, RuntimeConnection.forStdio({ path: GROVE, args: ["copilot", "--yolo"] }));
    const onPermissionRequest = () => assert.fail("nobody is asked");
    const session = await client.createSession({ model: "scripted", onPermissionRequest });
    assert.equal((await session.rpc.permissions.getMode()).mode, "allow-all");
    const shell = (command) => ({ tool: { name: "shell", input: command, output: "out", permission: "shell" } });
    const rules = { approved: [], denied: [{ kind: "shell", argument: "rm" }] };
    await session.rpc.permissions.configure({ rules });
    await session.sendAndWait({ prompt: script([shell("ls"), shell("rm"), { say: "done" }]) });
    const done = (await session.getEvents()).filter((event) => event.type === "tool.execution_complete");
    assert.deepEqual(done.map((event) => event.data.success), [true, false]);
});

test("a model of Copilot's that grove.toml maps is the session's under that name, and any other has a warning", async (t) => {
    const at = await home(t);
    await mkdir(join(at, ".config", "grove"), { recursive: true });
    await writeFile(join(at, ".config", "grove", "grove.toml"), '[copilot.models]\n"gpt-5" = "scripted"\n"sonnet" = "scripted"\n');
    const client = await spawned(t, at, RuntimeConnection.forStdio({ path: GROVE, args: ["copilot"] }));
    assert.ok((await client.listModels()).some((model) => model.id === "gpt-5"));
    const told = [];
    const onEvent = (event) => told.push(event);
    const session = await client.createSession({ model: "gpt-5", onPermissionRequest: approveAll, onEvent });
    const last = await session.sendAndWait({ prompt: script([{ say: "mapped" }]) });
    assert.equal(last.data.content, "mapped");
    assert.equal((await session.rpc.model.getCurrent()).modelId, "gpt-5");
    const [start] = await session.getEvents();
    assert.equal(start.data.selectedModel, "gpt-5");
    assert.deepEqual(told.find((event) => event.type === "session.start"), start);
    assert.equal((await session.rpc.model.switchTo({ modelId: "sonnet" })).modelId, "sonnet");
    const changed = () => told.find((event) => event.type === "session.model_change");
    await until("it is told", changed);
    assert.deepEqual([changed().data.previousModel, changed().data.newModel], ["gpt-5", "sonnet"]);
    assert.ok(!told.some((event) => event.type === "session.warning"));
    assert.equal((await session.rpc.model.switchTo({ modelId: "unheard-of" })).modelId, "unheard-of");
    await until("people are warned", () => told.some((event) => event.type === "session.warning" && /Unknown model "unheard-of"/.test(event.data.message)));
});

test("a program that brings its storage finds its sessions there the next time", async (t) => {
    const at = await home(t);
    const shelf = new Shelf();
    const connection = RuntimeConnection.forStdio({ path: GROVE, args: ["copilot"] });
    const bring = { onPermissionRequest: approveAll, createSessionFsProvider: shelf.provider };
    const client = await spawned(t, at, connection, { sessionFs: storage });
    const session = await client.createSession({ model: "scripted", ...bring });
    await session.sendAndWait({ prompt: script([{ say: "kept elsewhere" }]) });
    await client.stop();
    // The SDK serves the session's files until `session.detach` is answered.
    const log = await readFile(join(at, "data", "host.log"), "utf8");
    assert.doesNotMatch(log, /cannot be saved|ends before its storage client has all of it/);
    const again = await spawned(t, at, connection, { sessionFs: storage });
    const resumed = await again.resumeSession(session.sessionId, bring);
    assert.ok((await resumed.getEvents()).some((event) => event.data.content === "kept elsewhere"));
});

test("every frame is written in one piece, so that no program is ended between its head and its body", async (t) => {
    const at = await home(t);
    const program = spawn(GROVE, ["copilot", "--headless", "--stdio"], { env: surroundings(at), stdio: ["pipe", "pipe", "ignore"] });
    finally_(t, () => program.kill());
    for (let id = 0; id < 20; id++) {
        const body = JSON.stringify({ jsonrpc: "2.0", id, method: "ping", params: {} });
        program.stdin.write(`Content-Length: ${body.length}\r\n\r\n${body}`);
        const [piece] = await once(program.stdout, "data");
        const [, length, answer] = /^Content-Length: (\d+)\r\n\r\n(.*)$/.exec(piece.toString());
        assert.equal(answer.length, Number(length));
    }
});

test("temporary files go with the host, unless COPILOT_KEEP_TEMP_FILES keeps them", async (t) => {
    for (const [keep, left] of [
        ["false", 0],
        ["true", 1],
    ]) {
        const at = await home(t);
        const temp = join(at, "temp");
        await mkdir(temp);
        const env = { ...surroundings(at), TMPDIR: temp, COPILOT_KEEP_TEMP_FILES: keep };
        const client = await spawned(t, at, RuntimeConnection.forStdio({ path: GROVE, args: ["copilot"] }), { env });
        const handler = async () => "x".repeat(100_000);
        const big = { name: "big", description: "", parameters: { type: "object" }, handler };
        const session = await client.createSession({ model: "scripted", tools: [big], onPermissionRequest: approveAll });
        await session.sendAndWait({ prompt: script([{ clientTool: { name: "big" } }]) });
        const files = async () => (await readdir(temp, { recursive: true })).filter((name) => name.endsWith(".txt"));
        assert.equal((await files()).length, 1);
        await client.stop();
        await run(GROVE, ["stop"], { env });
        assert.equal((await files()).length, left, `COPILOT_KEEP_TEMP_FILES=${keep}`);
    }
});

test("a port that was opened by hand takes the token of the file, or of COPILOT_CONNECTION_TOKEN, and no other", async (t) => {
    const at = await home(t);
    for (const own of [undefined, "a token of its own"]) {
        const env = { ...surroundings(at), ...(own && { COPILOT_CONNECTION_TOKEN: own }) };
        const program = spawn(GROVE, ["copilot", "--headless", "--port", "0"], { env, stdio: ["ignore", "pipe", "ignore"] });
        finally_(t, () => program.kill());
        const [line] = await once(program.stdout, "data");
        const [, port] = /listening on port (\d+)/i.exec(line);
        const connectionToken = own ?? (await readFile(join(at, "data", "copilot-token"), "utf8"));
        const client = new CopilotClient({ connection: RuntimeConnection.forUri(port, { connectionToken }) });
        finally_(t, () => client.stop());
        const session = await client.createSession({ model: "scripted", onPermissionRequest: approveAll });
        const last = await session.sendAndWait({ prompt: script([{ say: "hello there" }]) });
        assert.equal(last.data.content, "hello there");
        for (const wrong of [undefined, "wrong"]) {
            const stranger = new CopilotClient({ connection: RuntimeConnection.forUri(port, { connectionToken: wrong }) });
            await assert.rejects(stranger.start(), /AUTHENTICATION/);
        }
    }
});
