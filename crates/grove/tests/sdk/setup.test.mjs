// What a program configures: models that no agent has, custom agents, system messages, tools, MCP servers, folders.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { approveAll } from "@github/copilot-sdk";
import { connect, folder, host, script, until } from "./support.mjs";

const NOTES = fileURLToPath(new URL("notes.mjs", import.meta.url));

async function begin(t) {
    const client = await connect(t, await host(t, await folder(t)));
    return { client, session: await client.createSession({ model: "scripted", onPermissionRequest: approveAll }) };
}

test("a model that no agent has is a name for the session's own, with its reasoning effort", async (t) => {
    const { session } = await begin(t);
    const told = [];
    session.on((event) => told.push(event));
    await session.setModel("gpt-5.4", { reasoningEffort: "high" });
    const changed = () => told.find((event) => event.type === "session.model_change");
    await until("it is told", changed);
    assert.deepEqual([changed().data.newModel, changed().data.reasoningEffort], ["gpt-5.4", "high"]);
    await until("people are warned", () => told.find((event) => event.type === "session.warning" && /Unknown model "gpt-5.4"/.test(event.data.message)));
    assert.deepEqual(await session.rpc.model.getCurrent(), { modelId: "gpt-5.4", reasoningEffort: "high" });
    assert.equal((await session.rpc.model.setReasoningEffort({ reasoningEffort: "low" })).reasoningEffort, "low");
    assert.equal((await session.rpc.model.getCurrent()).reasoningEffort, "low");
    const switched = await session.rpc.model.switchTo({ modelId: "scripted" });
    assert.equal(switched.modelState.reasoningEffort, undefined, "the effort was of the other name");
    const last = await session.sendAndWait({ prompt: script([{ say: "as ever" }]) });
    assert.equal(last.data.content, "as ever", "the session keeps its model");
});

test("custom agents are listed, and the prompt of the selected one reaches the agent", async (t) => {
    const { client, session } = await begin(t);
    assert.deepEqual((await session.rpc.agent.list()).agents, []);
    const customAgents = [
        { name: "poet", displayName: "The Poet", description: "writes verse", prompt: "Write verse.", infer: true },
        { name: "clerk", prompt: "File it.", tools: ["bash"] },
    ];
    const systemMessage = { mode: "append", content: "Be brief." };
    const told = [];
    const config = { model: "scripted", onPermissionRequest: approveAll, onEvent: (event) => told.push(event), systemMessage };
    const other = await client.createSession({ ...config, customAgents });
    const { agent } = other.rpc;
    const { agents } = await agent.list();
    assert.deepEqual(agents.map(({ name, displayName, description }) => [name, displayName, description]), [["poet", "The Poet", "writes verse"], ["clerk", "clerk", ""]]);
    assert.equal((await agent.getCurrent()).agent, null);
    const instructions = async () => (await other.sendAndWait({ prompt: script([{ instructions: true }]) })).data.content;
    assert.equal(await instructions(), "Be brief.");
    assert.equal((await agent.select({ name: "poet" })).agent.displayName, "The Poet");
    assert.equal((await agent.getCurrent()).agent.name, "poet");
    await until("it is told", () => told.some((event) => event.type === "subagent.selected" && event.data.agentName === "poet"));
    assert.equal(await instructions(), "Be brief.\n\nWrite verse.");
    await assert.rejects(agent.select({ name: "clerk" }), /cannot honour its `tools`/);
    await assert.rejects(agent.select({ name: "nobody" }), /no custom agent "nobody"/);
    assert.equal((await agent.getCurrent()).agent.name, "poet", "a refused choice changes nothing");
    await agent.deselect();
    assert.equal((await agent.getCurrent()).agent, null);
    assert.equal(await instructions(), "Be brief.");
    const resumed = await client.resumeSession(other.sessionId, { onPermissionRequest: approveAll, customAgents: [customAgents[0]], agent: "poet" });
    assert.equal((await resumed.rpc.agent.getCurrent()).agent.name, "poet");
    await assert.rejects(client.createSession({ ...config, customAgents, agent: "clerk" }), /cannot be selected/);
});

test("a customized system message is what its sections and its content say", async (t) => {
    const { client } = await begin(t);
    const open = (systemMessage) => client.createSession({ model: "scripted", onPermissionRequest: approveAll, systemMessage });
    const sections = { tone: { action: "replace", content: "Be warm." }, environment_context: { action: "remove" } };
    const session = await open({ mode: "customize", sections, content: "Mention earnings." });
    const answer = await session.sendAndWait({ prompt: script([{ instructions: true }]) });
    assert.equal(answer.data.content, "Be warm.\n\nMention earnings.");
    const transform = { tone: { action: (text) => text } };
    await assert.rejects(open({ mode: "customize", sections: transform }), /"transform" of the section tone/);
});

test("tools are left out by name, by their source, and for the default agent", async (t) => {
    const { client } = await begin(t);
    const tools = ["look", "hide"].map((name) => ({ name, description: name, parameters: { type: "object" }, handler: async () => `${name} ran` }));
    // The end of a failed turn comes after its error, so each step has a session of its own.
    const run = async (config, step) => {
        const session = await client.createSession({ model: "scripted", onPermissionRequest: approveAll, tools, ...config });
        const last = await session.sendAndWait({ prompt: script([step]) }).catch((error) => ({ data: { content: String(error) } }));
        return last?.data.content ?? "";
    };
    const tries = async (config) => {
        const both = [];
        for (const { name } of tools) both.push(/no client offers/.test(await run(config, { clientTool: { name } })) ? "-" : name);
        const shell = await run(config, { tool: { name: "bash", output: "x" } });
        return [...both, /may not use/.test(shell) ? "-" : "bash"].join(" ");
    };
    assert.equal(await tries({}), "look hide bash");
    assert.equal(await tries({ excludedTools: ["custom:hide"] }), "look - bash");
    assert.equal(await tries({ defaultAgent: { excludedTools: ["hide"] } }), "look - bash");
    assert.equal(await tries({ availableTools: ["builtin:*"] }), "- - bash");
    assert.equal(await tries({ availableTools: ["builtin:*", "custom:look"] }), "look - bash");
    assert.equal(await tries({ availableTools: ["builtin:*", "custom:*", "mcp:*"], excludedTools: ["builtin:bash"] }), "look hide -");
    assert.equal(await tries({ availableTools: ["look"] }), "look - -");
});

test("an MCP server works in its folder, with its variables, and with the tools that are named", async (t) => {
    const { client } = await begin(t);
    const work = await folder(t);
    await mkdir(join(work, "notes"));
    const notes = { type: "local", command: process.execPath, args: [NOTES], env: { NOTE_KEY: "key-99" } };
    const open = (more) => client.createSession({ model: "scripted", workingDirectory: work, onPermissionRequest: approveAll, mcpServers: { notes: { ...notes, ...more } } });
    const call = async (session, name) => (await session.sendAndWait({ prompt: script([{ mcpTool: { server: "notes", name } }]) })).data.content;
    const restricted = await open({ tools: ["read_note"], workingDirectory: join(work, "notes") });
    assert.equal(await call(restricted, "read_note"), `read_note gave: note-4711 in ${join(work, "notes")} with key-99\n`);
    assert.match(await call(restricted, "drop_note"), /may not use the tool drop_note/);
    assert.equal(existsSync(join(work, "notes", "dropped.txt")), false);
    const open_ = await open({ tools: ["*"] });
    assert.match(await call(open_, "drop_note"), new RegExp(`note-4711 in ${work} `));
    assert.equal(existsSync(join(work, "dropped.txt")), true);
    const far = { type: "http", url: "http://127.0.0.1:1/mcp", tools: ["one"] };
    await assert.rejects(open(far), /cannot be restricted/);
});

test("a resumed session moves to its folder, and may work in further ones", async (t) => {
    const { client, session } = await begin(t);
    const [place, further] = [await folder(t), await folder(t)];
    const { paths } = session.rpc.permissions;
    const path = join(further, "a.txt");
    assert.equal((await paths.isPathWithinAllowedDirectories({ path })).allowed, false);
    const told = [];
    const resumed = await client.resumeSession(session.sessionId, {
        onPermissionRequest: approveAll,
        onEvent: (event) => told.push(event),
        workingDirectory: place,
        additionalDirectories: [further],
        continuePendingWork: true,
    });
    assert.equal((await resumed.rpc.permissions.paths.isPathWithinAllowedDirectories({ path })).allowed, true);
    assert.equal((await resumed.rpc.metadata.snapshot()).workingDirectory, place);
    const resume = (await resumed.getEvents()).find((event) => event.type === "session.resume");
    assert.equal(resume.data.continuePendingWork, true);
});

test("a program that brings its own model server is told that agents have theirs", async (t) => {
    const { client } = await begin(t);
    const told = [];
    const provider = { type: "openai", baseUrl: "http://127.0.0.1:1/v1", apiKey: "hunter2" };
    const session = await client.createSession({ model: "scripted", onPermissionRequest: approveAll, onEvent: (event) => told.push(event), provider });
    await until("it is told", () => told.some((event) => event.data.warningType === "provider"));
    assert.ok(!JSON.stringify(told).includes("hunter2"));
    assert.equal((await session.sendAndWait({ prompt: script([{ say: "all the same" }]) })).data.content, "all the same");
});

test("the agent is told of a program's skills, and programs switch them", async (t) => {
    const { client } = await begin(t);
    const skills = await folder(t);
    const add = async (name, text) => {
        await mkdir(join(skills, name));
        await writeFile(join(skills, name, "SKILL.md"), text);
    };
    await add("knit", "---\nname: knitting\ndescription: Knits a scarf.\n---\n# Knitting\n");
    await mkdir(join(skills, "empty"));
    const discovered = await client.rpc.skills.discover({ skillDirectories: [skills] });
    assert.deepEqual(discovered.skills.map(({ name, description, enabled }) => [name, description, enabled]), [["knitting", "Knits a scarf.", true]]);
    const session = await client.createSession({ model: "scripted", onPermissionRequest: approveAll, skillDirectories: [skills], disabledSkills: ["knitting"] });
    const listed = async () => (await session.rpc.skills.list()).skills.map(({ name, enabled }) => `${name} ${enabled}`).join();
    const told = async () => (await session.sendAndWait({ prompt: script([{ instructions: true }]) })).data.content;
    assert.equal(await listed(), "knitting false");
    assert.equal(await told(), "none");
    await session.rpc.skills.enable({ name: "knitting" });
    assert.equal(await listed(), "knitting true");
    assert.ok((await told()).endsWith(`- knitting: Knits a scarf. (${join(skills, "knit", "SKILL.md")})`));
    await assert.rejects(session.rpc.skills.disable({ name: "sewing" }), /no skill "sewing"/);
    await add("sew", "A file without a head.");
    await session.rpc.skills.reload();
    assert.equal(await listed(), "knitting true,sew true");
    assert.deepEqual((await session.rpc.skills.getInvoked()).skills, []);
});
