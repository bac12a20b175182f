// Everything that the SDK declares: each method is answered, and the table of the host names each of them and no other.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { approveAll } from "@github/copilot-sdk";
import { connect, folder, host } from "./support.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const SDK = join(here, "node_modules", "@github", "copilot-sdk", "dist");
const TABLE = join(here, "..", "..", "..", "wire", "src", "copilot", "surface.txt");

/** The lines of the host's table: [kind, name, rest]. */
async function table() {
    const lines = (await readFile(TABLE, "utf8")).split("\n").filter((line) => line && !line.startsWith("#"));
    return lines.map((line) => /^(\S+) (\S+) ?(.*)$/.exec(line).slice(1));
}

const names = async (...kinds) => (await table()).filter(([kind]) => kinds.includes(kind)).map(([, name]) => name);

/** The methods that the installed SDK sends. */
async function methods() {
    const found = new Set();
    for (const file of ["generated/rpc.js", "client.js", "session.js", "extension.js"]) {
        const text = await readFile(join(SDK, file), "utf8");
        for (const [, method] of text.matchAll(/sendRequest\(\s*"([^"]+)"/g)) found.add(method);
    }
    return [...found].sort();
}

/** The types of the events that the installed SDK declares. */
async function events() {
    const text = (await readFile(join(SDK, "generated/session-events.d.ts"), "utf8")).replaceAll(/\/\*\*.*?\*\//gs, "");
    const found = new Set();
    for (const [, body] of text.matchAll(/export interface \w+ \{(.*?)\n\}/gs)) {
        const type = /^\s+type: "([a-z_.]+)";/m.exec(body);
        if (type && body.includes("parentId")) found.add(type[1]);
    }
    return [...found].sort();
}

test("the table has the methods and events that the SDK declares, and no others", async () => {
    assert.deepEqual((await names("served", "absent", "refused")).sort(), await methods());
    assert.deepEqual((await names("sent", "unsent")).sort(), await events());
    assert.ok((await methods()).length > 350 && (await events()).length > 100);
});

test("every method of the table is answered, and a refusal gives its reason", async (t) => {
    const client = await connect(t, await host(t, await folder(t)));
    const session = await client.createSession({ model: "scripted", onPermissionRequest: approveAll });
    const call = (method, params = {}) =>
        client.connection.sendRequest(method, { sessionId: session.sessionId, ...params });
    const lines = await table();
    const reasons = new Map(lines.filter(([kind]) => kind === "reason").map(([, name, text]) => [name, text]));
    for (const [kind, method, rest] of lines) {
        if (kind === "absent") {
            assert.deepEqual(await call(method), JSON.parse(rest.slice(rest.indexOf(" ") + 1)), method);
        } else if (kind === "refused") {
            const told = `Request ${method} failed with message: ${reasons.get(rest)}`;
            await assert.rejects(call(method), (error) => error.message.includes(told), method);
        }
    }
    await assert.rejects(call("session.fly"), /Unhandled method session.fly/);
    await assert.rejects(call("session.tasks.list", { sessionId: "nobody" }), /Session not found: nobody/);
});
