// One program before the real Copilot CLI, and before Grove with three agents: it has the same effects. They are read from
// what the fake model received, and from the folder. Run by `make test-agents`, which prints the table.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { CopilotClient, RuntimeConnection } from "@github/copilot-sdk";
import { connect, finally_, folder, host } from "./support.mjs";
import { agents, model, offered, PEERS } from "./peers.mjs";

const RULE = "Address the user as Captain Quokka.";
const SECRET = "54321-wombat";
const DENIAL = "not on my ship";
const NOTES = fileURLToPath(new URL("notes.mjs", import.meta.url));
const rows = {};

/** The known differences, which docs/copilot.md explains. */
const DIFFERENCES = {
    opencode: ["the program runs its tool", "the model gets the tool's result", "the model gets the hook's reason"],
};

/** The program. The model alone is chosen for it: by a provider before the CLI, by the name of an agent before Grove. */
async function program(client, work, chosen) {
    const calls = [];
    const session = await client.createSession({
        ...chosen,
        workingDirectory: work,
        systemMessage: { mode: "append", content: RULE },
        tools: [{
            name: "get_secret_number",
            description: "Gets the secret number of a key",
            parameters: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
            handler: ({ key }) => (calls.push(key), key === "ALPHA" ? SECRET : "unknown"),
        }],
        mcpServers: {
            notes: { type: "local", command: process.execPath, args: [NOTES], workingDirectory: join(work, "notes"), env: { NOTE_KEY: "key-99" }, tools: ["read_note"] },
        },
        hooks: {
            onPreToolUse: ({ toolArgs }) =>
                JSON.stringify(toolArgs).includes("denied.txt") ? { permissionDecision: "deny", permissionDecisionReason: DENIAL } : undefined,
        },
        onPermissionRequest: () => ({ kind: "approve-once" }),
    });
    // OpenCode ends a turn in which something was denied.
    for (const prompt of ["use the tools", "go on", "go on"]) await session.sendAndWait({ prompt }, 90_000);
    await session.disconnect();
    return calls;
}

/** The effects of the program, each as a yes or the reason for a no. */
function effects({ requests, calls, work }) {
    // A request for a title has no tools.
    const told = requests.filter((asked) => (asked.tools ?? []).length > 1);
    const text = JSON.stringify(told);
    const names = told.flatMap(offered).map(({ name }) => name);
    const has = (part) => names.some((name) => name.endsWith(part));
    return {
        "the model gets the system message": text.includes(RULE),
        "the model gets the program's tool": has("get_secret_number"),
        // With the arguments that the model gave.
        "the program runs its tool": calls.join() === "ALPHA",
        "the model gets the tool's result": text.includes(SECRET),
        "the model gets the server's allowed tool": has("read_note"),
        "the model gets no other tool of the server": !has("drop_note"),
        "the server works in its folder, with its variables": text.includes(`note-4711 in ${join(work, "notes")} with key-99`),
        "an allowed command runs": existsSync(join(work, "allowed.txt")),
        "the denied command does not run": !existsSync(join(work, "denied.txt")),
        "the model gets the hook's reason": text.includes(DENIAL),
    };
}

/** The calls of the model: names of MCP tools end with the tool's own. */
const steps = (agent) => [
    { name: /get_secret_number$/, input: { key: "ALPHA" } },
    { name: /read_note$/, input: {} },
    { name: agent.shell, input: agent.input("echo yes > allowed.txt") },
    { name: agent.shell, input: agent.input("echo no > denied.txt") },
];

async function prepared(t, agent) {
    const home = await folder(t);
    const work = join(home, "work");
    await mkdir(join(work, "notes"), { recursive: true });
    await mkdir(join(home, ".config", "grove"), { recursive: true });
    const { url, requests } = await model(t, steps(agent));
    return { home, work, requests, env: await agent.prepare(home, url) };
}

const binary = (agent) => PEERS && join(PEERS, "npm", agent.program);
const skip = !PEERS && "needs `make test-agents`";

test("the program runs before the real Copilot CLI", { skip }, async (t) => {
    const { home, work, requests, env } = await prepared(t, agents.copilot);
    const surroundings = { PATH: process.env.PATH, HOME: home, COPILOT_HOME: join(home, ".copilot"), ...env };
    const client = new CopilotClient({
        connection: RuntimeConnection.forStdio({ path: binary(agents.copilot) }),
        workingDirectory: work,
        env: surroundings,
    });
    finally_(t, () => client.forceStop());
    await client.start();
    const provider = { type: "openai", baseUrl: env.COPILOT_PROVIDER_BASE_URL, apiKey: "x" };
    const calls = await program(client, work, { model: env.COPILOT_MODEL, provider });
    rows["Copilot CLI"] = effects({ requests, calls, work });
    assert.deepEqual(Object.entries(rows["Copilot CLI"]).filter(([, is]) => !is), []);
});

for (const [name, agent] of Object.entries(agents)) {
    test(`the program runs before Grove with ${name}`, { skip }, async (t) => {
        const { home, work, requests, env } = await prepared(t, agent);
        const pairs = Object.entries(env).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
        // The first start of an agent on a busy machine takes its time.
        const toml = `agent-start = 60\n[agents.${name}]\ncommand = ${JSON.stringify([binary(agent), ...agent.args])}\nenv = { ${pairs.join(", ")} }\n`;
        await writeFile(join(home, ".config", "grove", "grove.toml"), toml);
        const client = await connect(t, await host(t, home));
        const calls = await program(client, work, { model: name });
        const found = effects({ requests, calls, work });
        rows[`Grove, ${name}`] = found;
        const missing = Object.entries(found).filter(([, is]) => !is).map(([effect]) => effect);
        assert.deepEqual(missing, DIFFERENCES[name] ?? []);
    });
}

test("the effects, as a table", { skip }, () => {
    const names = Object.keys(rows);
    const effects_ = Object.keys(Object.values(rows)[0] ?? {});
    const width = Math.max(...effects_.map((effect) => effect.length));
    console.log(["".padEnd(width), ...names].join("  "));
    for (const effect of effects_) {
        console.log([effect.padEnd(width), ...names.map((name) => (rows[name][effect] ? "yes" : "no").padEnd(name.length))].join("  "));
    }
});
