// Hooks with real agents, each in front of a fake model: a denying hook stops the tool. Run by `make test-agents`.

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect, folder, host } from "./support.mjs";
import { agents, model, PEERS } from "./peers.mjs";

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

// Copilot leaves its tools out by itself.
for (const [name, hooked] of [["opencode", "execute"], ["codex", "Bash"]]) {
    const agent = agents[name];
    test(`a tool of ${name} that the session may not use does not run`, { skip: !PEERS && "needs `make test-agents`" }, async (t) => {
        const home = await folder(t);
        await mkdir(join(home, "work"));
        await mkdir(join(home, ".config", "grove"), { recursive: true });
        const { url } = await model(t, [{ name: agent.shell, input: agent.input("echo no > denied.txt") }]);
        const env = Object.entries(await agent.prepare(home, url)).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
        const command = JSON.stringify([join(PEERS, "npm", agent.program), ...agent.args]);
        const toml = `agent-start = 60\n[agents.${name}]\ncommand = ${command}\nenv = { ${env.join(", ")} }\n`;
        await writeFile(join(home, ".config", "grove", "grove.toml"), toml);
        const client = await connect(t, await host(t, home));
        const session = await client.createSession({
            model: name,
            workingDirectory: join(home, "work"),
            onPermissionRequest: () => ({ kind: "approve-once" }),
            excludedTools: [hooked],
        });
        await session.sendAndWait({ prompt: "run the tool" }, 60_000);
        assert.equal(existsSync(join(home, "work", "denied.txt")), false, "the tool did not run");
        const denials = (await session.getEvents()).filter((event) => event.type === "tool.execution_complete" && !event.data.success);
        assert.match(denials[0].data.error.message, /may not use the tool/);
    });
}
