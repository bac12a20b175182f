// Real agents and the real Copilot CLI, each in front of a fake model. Run by `make test-agents`.

import { createServer } from "node:http";
import { mkdir, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { join } from "node:path";
import { finally_ } from "./support.mjs";

/** The folder of the installed programs. */
export const PEERS = process.env.GROVE_PEERS;
export const MODEL = "fake-model";

/** The names of the tools that a request to the model offers. */
export const offered = (asked) => (asked.tools ?? []).flatMap(({ name, function: called, tools }) => {
    // Codex groups the tools of an MCP server.
    if (tools) return tools.map((tool) => ({ name: tool.name, namespace: name }));
    return [{ name: called?.name ?? name ?? "" }];
});

/**
 * A model that calls these tools one after the other, and then says "done". It speaks Chat Completions and Responses.
 * A tool is named, or matched by an expression: agents give names of their own to the tools of MCP servers.
 */
export async function model(t, calls) {
    const steps = [...calls];
    const requests = [];
    const server = createServer(async (request, response) => {
        let body = "";
        for await (const piece of request) body += piece;
        if (request.method === "GET") return response.end(JSON.stringify({ object: "list", data: [{ id: MODEL, object: "model" }] }));
        const asked = JSON.parse(body);
        requests.push(asked);
        // A request for a title has no tools.
        const { name: wanted, input } = (asked.tools ?? []).length > 1 ? (steps[0] ?? {}) : {};
        const found = wanted instanceof RegExp ? offered(asked).find(({ name }) => wanted.test(name)) : wanted && { name: wanted };
        // An agent may not have asked an MCP server for its tools yet: the model waits for the next prompt.
        if (found) steps.shift();
        const step = { ...found, input };
        const id = `call_${requests.length}`;
        const usage = { input_tokens: 1, output_tokens: 1, prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
        if (!asked.stream) {
            const call = { id, type: "function", function: { name: step.name, arguments: JSON.stringify(input) } };
            const message = { role: "assistant", content: step.name ? null : "done", tool_calls: step.name && [call] };
            const choice = { index: 0, message, finish_reason: step.name ? "tool_calls" : "stop" };
            return response.end(JSON.stringify({ id, object: "chat.completion", created: 1, model: MODEL, choices: [choice], usage }));
        }
        response.writeHead(200, { "content-type": "text/event-stream" });
        const send = (data, event) => response.write(`${event ? `event: ${event}\n` : ""}data: ${JSON.stringify(data)}\n\n`);
        if (request.url.includes("responses")) {
            const item = step.name
                ? { type: "function_call", id: `item-${id}`, call_id: id, name: step.name, namespace: step.namespace, arguments: JSON.stringify(step.input) }
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

/** The agents: their programs, how they run a command and read a file, and their configuration. */
export const agents = {
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
