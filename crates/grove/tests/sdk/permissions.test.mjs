// Permissions that a program sets.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { connect, folder, host, script, until } from "./support.mjs";

const shell = (command) => ({ tool: { name: "shell", input: command, output: "out", permission: "shell" } });

async function begin(t, home = undefined) {
    const at = await host(t, home ?? (await folder(t)));
    const client = await connect(t, at);
    const asked = [];
    const refuse = (request) => {
        asked.push(request.fullCommandText);
        return { kind: "reject" };
    };
    const session = await client.createSession({ model: "scripted", onPermissionRequest: refuse });
    const run = async (...commands) => {
        asked.length = 0;
        await session.sendAndWait({ prompt: script([...commands.map(shell), { say: "done" }]) });
        return [...asked];
    };
    return { at, client, session, run };
}

test("where everything is approved nobody is asked, until people are to be asked again", async (t) => {
    const { session, run } = await begin(t);
    const { permissions } = session.rpc;
    const heard = [];
    session.on("session.permissions_changed", (event) => heard.push(event.data));
    assert.equal((await permissions.getMode()).mode, "manual");
    assert.deepEqual(await run("ls"), ["ls"]);
    assert.equal((await permissions.setApproveAll({ enabled: true })).success, true);
    assert.equal((await permissions.getMode()).mode, "allow-all");
    assert.deepEqual(await run("ls"), []);
    const done = (await session.getEvents()).filter((event) => event.type === "tool.execution_complete");
    assert.deepEqual(done.map((event) => event.data.success), [false, true]);
    assert.deepEqual(await permissions.setMode({ mode: "manual" }), { success: true, mode: "manual" });
    assert.deepEqual(await run("ls"), ["ls"]);
    assert.deepEqual(heard, [
        { mode: "allow-all", previousMode: "manual" },
        { mode: "manual", previousMode: "allow-all" },
    ]);
});

test("a mode that needs a judge is not taken, and an unknown one is refused", async (t) => {
    const { session } = await begin(t);
    const { permissions } = session.rpc;
    assert.deepEqual(await permissions.setMode({ mode: "assisted" }), { success: false, mode: "manual" });
    await assert.rejects(permissions.setMode({ mode: "yolo" }), /not a mode/);
});

test("what waits is answered when everything is approved", async (t) => {
    const at = await host(t, await folder(t));
    const client = await connect(t, at);
    const session = await client.createSession({ model: "scripted", onPermissionRequest: () => new Promise(() => {}) });
    const done = session.sendAndWait({ prompt: script([shell("ls"), { say: "done" }]) });
    const waits = async () => (await session.rpc.permissions.pendingRequests()).items.length === 1;
    await until("the question", waits);
    await session.rpc.permissions.setMode({ mode: "allow-all" });
    assert.equal((await done).data.content, "done");
});

test("rules allow and deny commands, and a denial comes first", async (t) => {
    const { session, run } = await begin(t);
    const { permissions } = session.rpc;
    const rules = {
        approved: [{ kind: "shell", argument: "git:*" }],
        denied: [{ kind: "shell", argument: "git push" }],
    };
    assert.equal((await permissions.configure({ rules })).success, true);
    assert.deepEqual(await run("git status", "git push", "ls", "git log; rm x"), ["ls", "git log; rm x"]);
    const done = (await session.getEvents()).filter((event) => event.type === "tool.execution_complete");
    assert.deepEqual(done.map((event) => event.data.success), [true, false, false, false]);
    await permissions.modifyRules({ scope: "session", add: [{ kind: "shell", argument: "ls" }] });
    assert.deepEqual(await run("ls"), []);
    await permissions.modifyRules({ scope: "session", remove: [{ kind: "shell", argument: "ls" }] });
    assert.deepEqual(await run("ls"), ["ls"]);
    await permissions.resetSessionApprovals({});
    assert.deepEqual(await run("git status"), ["git status"]);
    await assert.rejects(permissions.modifyRules({ scope: "location", add: [] }), /with a session, not with a folder/);
    await assert.rejects(permissions.configure({ rules: { approved: [{ kind: "x", argument: null }], denied: [] } }), /kind of rule/);
});

test("what a program allows outlasts the host", async (t) => {
    const home = await folder(t);
    const { at, client, session } = await begin(t, home);
    await session.rpc.permissions.setApproveAll({ enabled: true });
    await client.stop();
    await at.stop();
    const again = await connect(t, await host(t, home));
    const resumed = await again.resumeSession(session.sessionId, { onPermissionRequest: () => ({ kind: "reject" }) });
    assert.equal((await resumed.rpc.permissions.getMode()).mode, "allow-all");
});

test("folders are listed, added and asked about", async (t) => {
    const at = await folder(t);
    await mkdir(join(at, "repo/.git"), { recursive: true });
    const client = await connect(t, await host(t, await folder(t)));
    const workingDirectory = join(at, "repo");
    const session = await client.createSession({ model: "scripted", workingDirectory, onPermissionRequest: () => ({ kind: "reject" }) });
    const { permissions } = session.rpc;
    assert.deepEqual(await permissions.paths.list(), { directories: [workingDirectory], primary: workingDirectory });
    const inside = async (path) => (await permissions.paths.isPathWithinAllowedDirectories({ path })).allowed;
    const other = join(at, "other");
    assert.deepEqual([await inside(join(workingDirectory, "a")), await inside(other)], [true, false]);
    await permissions.paths.add({ path: other });
    assert.equal(await inside(join(other, "b")), true);
    assert.equal((await permissions.paths.isPathWithinWorkspace({ path: other })).allowed, false);
    await permissions.paths.updatePrimary({ path: other });
    assert.equal((await permissions.paths.isPathWithinWorkspace({ path: other })).allowed, true);
    await assert.rejects(permissions.paths.add({ path: "here" }), /not an absolute path/);
    const location = await permissions.locations.resolve({ workingDirectory: join(workingDirectory, "src") });
    assert.deepEqual(location, { locationKey: workingDirectory, locationType: "repo" });
    assert.equal((await permissions.locations.apply({ workingDirectory })).appliedRuleCount, 0);
    await assert.rejects(permissions.locations.addToolApproval({ locationKey: workingDirectory, approval: { kind: "read" } }), /with a session/);
    assert.equal((await permissions.urls.setUnrestrictedMode({ enabled: true })).success, true);
    assert.equal((await permissions.setRequired({ required: true })).success, true);
    assert.equal((await permissions.notifyPromptShown({ message: "?" })).success, true);
});

test("a folder is trusted once somebody says so, by every session and after a restart", async (t) => {
    const home = await folder(t);
    const { at, client, session } = await begin(t, home);
    const { folderTrust } = session.rpc.permissions;
    assert.equal((await folderTrust.isTrusted({ path: "/w/a" })).trusted, false);
    assert.equal((await folderTrust.addTrusted({ path: "/w" })).success, true);
    assert.equal((await folderTrust.isTrusted({ path: "/w/a" })).trusted, true);
    await client.stop();
    await at.stop();
    const again = await connect(t, await host(t, home));
    const later = await again.createSession({ model: "scripted", onPermissionRequest: () => ({ kind: "reject" }) });
    assert.equal((await later.rpc.permissions.folderTrust.isTrusted({ path: "/w/a" })).trusted, true);
});
