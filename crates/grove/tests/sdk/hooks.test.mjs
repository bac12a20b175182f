// Hooks of a program: the host calls them before and after what happens in a session.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, folder, host, script, until } from "./support.mjs";

const tool = (name, more = {}) => ({ tool: { name, input: '{"path":"a.txt"}', output: "out", ...more } });
const approve = () => ({ kind: "approve-once" });

/** A session of the scripted agent with these hooks, and everything that they were called with. */
async function begin(t, hooks, { at, ...options } = {}) {
    const server = at ?? (await host(t, await folder(t)));
    const client = await connect(t, server);
    const calls = [];
    const watched = Object.entries(hooks).map(([name, hook]) => [
        name,
        async (input, invocation) => {
            calls.push({ name, input, invocation });
            return hook(input, invocation);
        },
    ]);
    const asked = [];
    const session = await client.createSession({
        model: "scripted",
        onPermissionRequest: (request) => {
            asked.push(request);
            return approve();
        },
        hooks: Object.fromEntries(watched),
        ...options,
    });
    const of = (name) => calls.filter((call) => call.name === name).map((call) => call.input);
    return { at: server, client, session, calls, asked, of };
}

const completions = async (session) =>
    (await session.getEvents()).filter((event) => event.type === "tool.execution_complete").map((event) => event.data);

test("a hook that denies stops the tool before it runs, and says why", async (t) => {
    const deny = (input) => (input.toolName === "rm" ? { permissionDecision: "deny", permissionDecisionReason: "not here" } : undefined);
    const { session, asked, of } = await begin(t, { onPreToolUse: deny });
    await session.sendAndWait({ prompt: script([tool("rm"), tool("ls"), tool("rm", { permission: "shell" }), { say: "done" }]) });
    const done = await completions(session);
    assert.deepEqual(done.map((data) => data.success), [false, true, false]);
    assert.match(done[0].error.message, /Denied by preToolUse hook: not here/);
    assert.equal(done[0].error.code, "denied");
    assert.deepEqual(of("onPreToolUse").map((input) => input.toolName), ["rm", "ls", "rm"]);
    const [input] = of("onPreToolUse");
    assert.deepEqual(input.toolArgs, { path: "a.txt" });
    assert.equal(input.sessionId, session.sessionId);
    assert.ok(input.timestamp instanceof Date && typeof input.workingDirectory === "string");
    assert.deepEqual(asked, [], "nobody is asked about what a hook has denied");
});

test("a denial holds where everything is approved, and an allowed call asks nobody", async (t) => {
    const decide = (input) => ({ permissionDecision: input.toolName === "rm" ? "deny" : "allow" });
    const { session, asked } = await begin(t, { onPreToolUse: decide });
    await session.sendAndWait({ prompt: script([tool("ls", { permission: "shell" }), { say: "done" }]) });
    assert.deepEqual(asked, []);
    await session.rpc.permissions.setApproveAll({ enabled: true });
    await session.sendAndWait({ prompt: script([tool("rm", { permission: "shell" }), { say: "done" }]) });
    assert.deepEqual((await completions(session)).map((data) => data.success), [true, false]);
});

test("a hook that asks has a person decide, also where everything is approved", async (t) => {
    const { session, asked } = await begin(t, {
        onPreToolUse: () => ({ permissionDecision: "ask", permissionDecisionReason: "look at this" }),
    });
    await session.rpc.permissions.setApproveAll({ enabled: true });
    await session.sendAndWait({ prompt: script([tool("ls"), { say: "done" }]) });
    assert.equal(asked.length, 1);
    assert.deepEqual((await completions(session)).map((data) => data.success), [true]);
});

test("a hook changes the arguments of a call, its result, and what the client's own tool is given", async (t) => {
    const given = [];
    const own = {
        name: "weather",
        description: "Tells the weather",
        parameters: { type: "object" },
        handler: async (args) => {
            given.push(args);
            return "rain";
        },
    };
    const { session, of } = await begin(
        t,
        {
            onPreToolUse: () => ({ permissionDecision: "allow", modifiedArgs: { path: "b.txt" } }),
            onPostToolUse: (input) =>
                input.toolName === "ls" ? { modifiedResult: { textResultForLlm: "changed", resultType: "success" } } : undefined,
        },
        { tools: [own] },
    );
    await session.sendAndWait({ prompt: script([tool("ls"), { clientTool: { name: "weather", input: "{}" } }, { say: "done" }]) });
    assert.deepEqual(given, [{ path: "b.txt" }]);
    const [listed] = await completions(session);
    assert.equal(listed.result.content, "changed");
    const results = await until("both results are told", () => of("onPostToolUse").length === 2 && of("onPostToolUse"));
    assert.deepEqual(results.map((input) => [input.toolName, input.toolArgs]), [
        ["ls", { path: "b.txt" }],
        ["weather", { path: "b.txt" }],
    ]);
    assert.equal(results[0].toolResult.textResultForLlm, "out");
    assert.equal(results[0].toolResult.resultType, "success");
});

test("a failed tool has a hook of its own", async (t) => {
    const { session, of } = await begin(t, { onPostToolUse: () => {}, onPostToolUseFailure: () => {} });
    await session.sendAndWait({ prompt: script([tool("ls", { success: false, output: "no such file" }), { say: "done" }]) });
    const [failed] = of("onPostToolUseFailure");
    assert.equal(failed.error, "no such file");
    assert.deepEqual(of("onPostToolUse"), []);
});

test("hooks see each prompt before it is stored, and may change it", async (t) => {
    const { session, of, calls } = await begin(t, {
        onSessionStart: () => ({ additionalContext: "be brief" }),
        onUserPromptSubmitted: (input) => ({ modifiedPrompt: input.prompt.replace("secret", "[removed]") }),
        onSessionEnd: () => {},
        onErrorOccurred: () => {},
        onAgentStop: () => {},
    });
    await session.sendAndWait({ prompt: "my secret" });
    await session.sendAndWait({ prompt: "again secret" });
    const prompts = (await session.getEvents()).filter((event) => event.type === "user.message").map((event) => event.data.content);
    assert.match(prompts[0], /^my \[removed\]\n\n<system_reminder>\nbe brief\n<\/system_reminder>$/);
    assert.equal(prompts[1], "again [removed]");
    assert.deepEqual(of("onSessionStart").map(({ source, initialPrompt }) => ({ source, initialPrompt })), [
        { source: "new", initialPrompt: "my secret" },
    ]);
    assert.deepEqual(of("onUserPromptSubmitted").map((input) => input.prompt), ["my secret", "again secret"]);
    await until("both turns have ended for the hook", () => of("onAgentStop").length === 2);
    assert.deepEqual(of("onErrorOccurred"), []);
    await session.disconnect();
    await until("the end is told", () => of("onSessionEnd").length === 1);
    assert.equal(of("onSessionEnd")[0].reason, "user_exit");
    assert.equal(calls[0].invocation.sessionId, session.sessionId);
});

test("an error is told, and an agent that a hook keeps from stopping goes on, within bounds", async (t) => {
    const { session, of } = await begin(t, {
        onErrorOccurred: () => {},
        onAgentStop: (input) => (input.stopHookActive ? undefined : { decision: "block", reason: script([{ say: "one more" }]) }),
    });
    await session.send({ prompt: script([{ say: "done" }]) });
    await until("the agent stops twice", () => of("onAgentStop").length === 2);
    assert.deepEqual(of("onAgentStop").map((input) => input.stopHookActive), [false, true]);
    await session.sendAndWait({ prompt: script([{ fail: "no model" }]) }).catch(() => {});
    const [error] = await until("the error is told", () => of("onErrorOccurred").length === 1 && of("onErrorOccurred"));
    assert.equal(error.error, "no model");
    assert.equal(error.errorContext, "model_call");
});

test("every client with hooks is asked, and one denial is enough", async (t) => {
    const first = await begin(t, { onPreToolUse: () => ({ permissionDecision: "allow" }) });
    const other = await connect(t, first.at);
    const hooks = { onPreToolUse: () => ({ permissionDecision: "deny", permissionDecisionReason: "the second says no" }) };
    const second = await other.resumeSession(first.session.sessionId, { onPermissionRequest: approve, hooks });
    await first.session.sendAndWait({ prompt: script([tool("ls"), { say: "done" }]) });
    const [denied] = await completions(first.session);
    assert.match(denied.error.message, /the second says no/);
    // A client that closes the session takes its hooks with it.
    await second.disconnect();
    await first.session.sendAndWait({ prompt: script([tool("ls"), { say: "done" }]) });
    assert.deepEqual((await completions(first.session)).map((data) => data.success), [false, true]);
});

test("a call waits for a client that comes back, and its hook still denies", async (t) => {
    const { at, client, session } = await begin(t, { onPreToolUse: () => new Promise(() => {}) });
    const watcher = await connect(t, at);
    const seen = await watcher.resumeSession(session.sessionId, { onPermissionRequest: approve });
    await seen.send({ prompt: script([tool("rm"), { say: "done" }]) });
    await new Promise((resolve) => setTimeout(resolve, 300));
    // Its connection breaks while the hook works.
    await client.forceStop();
    const again = await connect(t, at);
    const hooks = { onPreToolUse: () => ({ permissionDecision: "deny", permissionDecisionReason: "still no" }) };
    await again.resumeSession(session.sessionId, { onPermissionRequest: approve, hooks });
    const [denied] = await until("the call is denied", async () => {
        const done = await completions(seen);
        return done.length > 0 && done;
    });
    assert.match(denied.error.message, /still no/);
});

test("a session has its hooks after the host was killed: a call waits for them, and without them it is denied", async (t) => {
    const home = await folder(t);
    const deny = () => ({ permissionDecision: "deny", permissionDecisionReason: "not here" });
    const { at, session } = await begin(t, { onPreToolUse: deny }, { at: await host(t, home) });
    await session.sendAndWait({ prompt: script([tool("rm"), { say: "one" }]) });
    await at.stop("SIGKILL");
    const again = await host(t, home);
    // A program without hooks opens the session: those that were there are expected all the same.
    const plain = await connect(t, again);
    const seen = await plain.resumeSession(session.sessionId, { onPermissionRequest: approve });
    const ended = seen.sendAndWait({ prompt: script([tool("ls"), { say: "two" }]) }, 60_000);
    const asked = [];
    const client = await connect(t, again);
    await client.resumeSession(session.sessionId, {
        onPermissionRequest: approve,
        hooks: { onPreToolUse: (input) => (asked.push(input.toolName), deny()) },
    });
    await ended;
    assert.deepEqual(asked, ["ls"], "the call has waited");
    assert.deepEqual((await completions(seen)).map((data) => data.success), [false, false]);
});
