// An MCP server over stdio with two tools: `read_note` says where the server works, `drop_note` must not be called.

import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const tools = ["read_note", "drop_note"].map((name) => ({ name, description: `${name} of the notes`, inputSchema: { type: "object", properties: {} } }));
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    const results = {
        initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "notes", version: "1" } }),
        ping: () => ({}),
        "tools/list": () => ({ tools }),
        "tools/call": () => {
            if (params.name === "drop_note") writeFileSync("dropped.txt", "yes");
            return { content: [{ type: "text", text: `note-4711 in ${process.cwd()} with ${process.env.NOTE_KEY}` }] };
        },
    };
    const result = results[method]?.();
    send(result ? { id, result } : { id, error: { code: -32601, message: `no method ${method}` } });
}
