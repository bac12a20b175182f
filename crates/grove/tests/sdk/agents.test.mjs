// Hooks with real agents, each in front of a fake model: a denying hook stops the tool. Run by `make test-agents`.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { connect, finally_, folder, host } from "./support.mjs";

const PEERS = process.env.GROVE_PEERS;
const MODEL = "fake-model";

/** A model that calls these tools one after the other, and then says "done". It speaks Chat Completions and Responses. */
async function model(t, calls) {
    const steps = [...calls];
    const requests = [];
    const server = createServer(async (request, response) => {
        let body = "";
        for await (const piece of request) body += piece;
        if (request.method === "GET") return response.end(JSON.stringify({ object: "list", data: [{ id: MODEL, object: "model" }] }));
        const asked = JSON.parse(body);
        requests.push(asked);
        // A request for a title has no tools.
        const step = (asked.tools ?? []).length > 1 ? (steps.shift() ?? {}) : {};
        const id = `call_${requests.length}`;
        response.writeHead(200, { "content-type": "text/event-stream" });
        const send = (data, event) => response.write(`${event ? `event: ${event}\n` : ""}data: ${JSON.stringify(data)}\n\n`);
        const usage = { input_tokens: 1, output_tokens: 1, prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
        if (request.url.includes("responses")) {
            const item = step.name
                ? { type: "function_call", id: `item-${id}`, call_id: id, name: step.name, arguments: JSON.stringify(step.input) }
                : { type: "message", id: `item-${id}`, role: "assistant", content: [{ type: "output_text", text: "done" }] };
            send({ type: "response.created", response: { id } }, "response.created");
            send({ type: "response.output_item.done", output_index: 0, item }, "response.output_item.done");
            send({ type: "response.completed", response: { id, usage } }, "response.completed");
        } else {
            const chunk = (delta, finish_reason) => ({
                id, object: "chat.completion.chunk", created: 1, model: MODEL, choices: [{ index: 0, delta, finish_reason }],
            });
            const call = { index: 0, id, type: "function", function: { name: step.name, arguments: JSON.stringify(step.input) } };
            send(chunk({ role: "assistant", ...(step.name ? { tool_calls: [call] } : { content: "done" }) }, null));
            send({ ...chunk({}, step.name ? "tool_calls" : "stop"), usage });
            response.write("data: [DONE]\n\n");
        }
        response.end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    finally_(t, () => new Promise((done) => (server.closeAllConnections(), server.close(done))));
    return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

const agents = {
    opencode: {
        program: "opencode-ai/node_modules/.bin/opencode",
        args: ["acp"],
        shell: "bash",
        input: (command) => ({ command, description: "a command" }),
        read: (path) => ["read", { filePath: path }],
        async prepare(home, url) {
            const provider = { npm: "@ai-sdk/openai-compatible", name: "Fake", models: { [MODEL]: { name: "Fake" } } };
            provider.options = { baseURL: `${url}/v1`, apiKey: "x" };
            // Everything is allowed by the user's own configuration.
            const config = { model: `fake/${MODEL}`, provider: { fake: provider }, permission: "allow" };
            config.agent = { build: { permission: { bash: "allow" } } };
            await writeFile(join(home, "work", "opencode.json"), JSON.stringify(config));
            return { OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1", OPENCODE_DISABLE_AUTOUPDATE: "1" };
        },
    },
    codex: {
        program: "agentclientprotocol-codex-acp/node_modules/.bin/codex-acp",
        args: [],
        shell: "exec_command",
        input: (command) => ({ cmd: command }),
        read: (path) => ["exec_command", { cmd: `cat ${path}` }],
        async prepare(home, url) {
            await mkdir(join(home, "codex"));
            const config = `model = "${MODEL}"\nmodel_provider = "fake"\nsandbox_mode = "danger-full-access"\n` +
                `approval_policy = "never"\n[model_providers.fake]\nname = "fake"\nbase_url = "${url}/v1"\n` +
                `wire_api = "responses"\nrequires_openai_auth = false\n`;
            await writeFile(join(home, "codex", "config.toml"), config);
            return { CODEX_HOME: join(home, "codex"), INITIAL_AGENT_MODE: "agent-full-access" };
        },
    },
    copilot: {
        program: "github-copilot/node_modules/.bin/copilot",
        args: ["--acp", "--no-auto-update"],
        shell: "bash",
        input: (command) => ({ command, description: "a command" }),
        read: (path) => ["view", { path }],
        prepare: async (_, url) => ({
            COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
            COPILOT_MODEL: MODEL,
            COPILOT_PROVIDER_API_KEY: "x",
            COPILOT_OFFLINE: "true",
            COPILOT_AUTO_UPDATE: "false",
        }),
    },
};

for (const [name, agent] of Object.entries(agents)) {
    const program = PEERS && join(PEERS, "npm", agent.program);
    test(`a hook that denies stops the tools of ${name}, also those that only read`, { skip: !PEERS && "needs `make test-agents`" }, async (t) => {
        const home = await folder(t);
        await mkdir(join(home, "work"));
        await mkdir(join(home, ".config", "grove"), { recursive: true });
        const path = join(home, "work", "a.txt");
        await writeFile(path, "plugh-xyzzy-42\n");
        const call = (command) => ({ name: agent.shell, input: agent.input(command) });
        const [reader, read] = agent.read(path);
        const { url, requests } = await model(t, [call("echo yes > allowed.txt"), { name: reader, input: read }, call("echo no > denied.txt")]);
        const env = Object.entries(await agent.prepare(home, url)).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
        const toml = `[agents.${name}]\ncommand = ${JSON.stringify([program, ...agent.args])}\nenv = { ${env.join(", ")} }\n`;
        await writeFile(join(home, ".config", "grove", "grove.toml"), toml);
        const client = await connect(t, await host(t, home));
        const seen = [];
        const session = await client.createSession({
            model: name,
            workingDirectory: join(home, "work"),
            onPermissionRequest: () => ({ kind: "approve-once" }),
            hooks: {
                onPreToolUse: ({ toolName, toolArgs }) => {
                    const text = JSON.stringify(toolArgs);
                    seen.push(`${toolName} ${text}`);
                    const denied = text.includes("denied.txt") || (text.includes("a.txt") && !text.includes("allowed.txt"));
                    return denied ? { permissionDecision: "deny", permissionDecisionReason: "grove says no" } : undefined;
                },
            },
        });
        // OpenCode ends a turn in which something was denied.
        for (const prompt of ["run the tools", "go on", "go on"]) await session.sendAndWait({ prompt }, 60_000);
        t.diagnostic(seen.join("\n"));
        assert.equal((await readFile(join(home, "work", "allowed.txt"), "utf8")).trim(), "yes");
        assert.equal(existsSync(join(home, "work", "denied.txt")), false, "the denied tool did not run");
        assert.ok(!JSON.stringify(requests).includes("plugh-xyzzy-42"), "the denied read gave the model nothing");
        assert.ok(seen.some((call) => call.includes("denied.txt")) && seen.some((call) => call.includes("a.txt")));
        const events = await session.getEvents();
        const denials = events.filter((event) => event.type === "tool.execution_complete" && !event.data.success);
        assert.ok(denials.some((event) => /grove says no/.test(event.data.error?.message ?? "")), "people are told the reason");
        if (name !== "opencode") assert.ok(JSON.stringify(requests).includes("grove says no"), "the model is told the reason");
    });
}
