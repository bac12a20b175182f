// The wire protocol itself, including messages that no SDK sends.

import assert from "node:assert/strict";
import { connect as dial } from "node:net";
import { once } from "node:events";
import { test } from "node:test";
import { connect, finally_, folder, host } from "./support.mjs";

/** A connection that sends given messages, and returns answers by their id. */
async function raw(t, at) {
    const [address, port] = at.copilot.split(":");
    const socket = dial({ host: address, port: Number(port), allowHalfOpen: true });
    await once(socket, "connect");
    finally_(t, () => socket.destroy());
    let buffer = Buffer.alloc(0);
    const messages = [];
    socket.on("data", (data) => {
        buffer = Buffer.concat([buffer, data]);
        for (;;) {
            const head = buffer.indexOf("\r\n\r\n");
            if (head < 0) return;
            const length = Number(/content-length: (\d+)/i.exec(buffer.subarray(0, head))[1]);
            if (buffer.length < head + 4 + length) return;
            messages.push(JSON.parse(buffer.subarray(head + 4, head + 4 + length)));
            buffer = buffer.subarray(head + 4 + length);
        }
    });
    const frame = (text) => `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
    let last = 0;
    const call = async (method, params) => {
        const id = ++last;
        socket.write(frame(JSON.stringify({ jsonrpc: "2.0", id, method, params })));
        for (;;) {
            const answer = messages.find((message) => message.id === id && !message.method);
            if (answer) return answer;
            await once(socket, "data");
        }
    };
    return { socket, call, frame, messages };
}

test("nothing is answered before the token, and errors have their codes", async (t) => {
    const at = await host(t, await folder(t));
    const { call } = await raw(t, at);
    assert.equal((await call("ping", {})).error.code, -32001);
    assert.equal((await call("connect", { token: "wrong" })).error.code, -32002);
    const connected = await call("connect", { token: at.token, somethingNew: 1 });
    assert.equal(connected.result.protocolVersion, 3);
    const unknown = await call("session.fly", {});
    assert.deepEqual([unknown.error.code, unknown.error.message], [-32601, "Unhandled method session.fly"]);
    const failed = await call("session.send", { sessionId: "nobody", prompt: "x" });
    assert.equal(failed.error.code, -32603);
    assert.match(failed.error.message, /^Request session.send failed with message: /);
    assert.match((await call("session.send", {})).error.message, /missing field/);
});

test("the host closes its half when the client has closed its own", async (t) => {
    const at = await host(t, await folder(t));
    const { socket, call } = await raw(t, at);
    await call("connect", { token: at.token });
    socket.end();
    await once(socket, "end");
});

test("what cannot be read is answered with an error, and the host goes on", async (t) => {
    const at = await host(t, await folder(t));
    for (const bytes of ["Content-Length: x\r\n\r\n{}", "Content-Length: 99999999999\r\n\r\n", "nonsense\r\n\r\n", "a".repeat(10_000)]) {
        const { socket } = await raw(t, at);
        socket.write(bytes);
        await once(socket, "end");
    }
    const { socket, call, frame, messages } = await raw(t, at);
    socket.write(frame("{not json"));
    await once(socket, "data");
    assert.equal(messages[0].error.code, -32700);
    assert.ok((await call("connect", { token: at.token })).result.ok);
});

test("the head of a message is acknowledged at once: none costs the 40 ms that a delayed one takes", async (t) => {
    const client = await connect(t, await host(t, await folder(t)));
    const took = [];
    for (let n = 0; n < 20; n += 1) {
        const began = performance.now();
        await client.ping(`${n}`);
        took.push(performance.now() - began);
    }
    // A busy machine slows some of them, a delayed acknowledgement all.
    assert.ok(Math.min(...took.slice(1)) < 30, `${took}`);
});
