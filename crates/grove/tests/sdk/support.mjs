// Helpers of the tests: a host for each, clients of the real SDK, and client-side storage.

import { spawn } from "node:child_process";
import { mkdtemp, rm, readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { CopilotClient, RuntimeConnection } from "@github/copilot-sdk";

export const GROVE = process.env.GROVE_BIN;
if (!GROVE) throw new Error("set GROVE_BIN to the program `grove`");

const behind = new WeakMap();

/** Cleans up at the end of a test, in reverse order. */
export function finally_(t, end) {
    if (!behind.has(t)) {
        const ends = [];
        behind.set(t, ends);
        t.after(async () => {
            for (const end of ends.reverse()) await end();
        });
    }
    behind.get(t).push(end);
}

/** A folder for one test, deleted after it. */
export async function folder(t) {
    const path = await mkdtemp(join(tmpdir(), "grove-sdk-"));
    // A program that was just ended may still write.
    finally_(t, () => rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }));
    return path;
}

/** The environment of a host, without anything of the machine's user. */
export function surroundings(home) {
    const grove = { GROVE_DATA_DIR: join(home, "data"), GROVE_LISTEN: "127.0.0.1:0", GROVE_LOG: "warn" };
    return { PATH: process.env.PATH, HOME: home, ...grove };
}

/** A host that listens for SDKs. It ends with the test. */
export async function host(t, home, { copilot = "127.0.0.1:0" } = {}) {
    const process_ = spawn(GROVE, ["serve", "--json", "--copilot-listen", copilot], {
        env: surroundings(home),
        stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    let log = "";
    process_.stderr.on("data", (data) => (log += data));
    const endpoint = await new Promise((resolve, reject) => {
        process_.stdout.on("data", (data) => {
            said += data;
            if (said.includes("\n")) resolve(JSON.parse(said.slice(0, said.indexOf("\n"))));
        });
        process_.once("exit", (code) => reject(new Error(`the host ended with ${code}: ${log}`)));
    });
    const ended = once(process_, "exit");
    const stop = async (signal = "SIGTERM") => {
        process_.kill(signal);
        await ended;
    };
    finally_(t, async () => {
        if (process_.exitCode === null && process_.signalCode === null) await stop();
    });
    return { ...endpoint, stop, log: () => log };
}

/** An SDK client at a host's address. It is stopped with the test. */
export async function connect(t, at, options = {}) {
    const client = new CopilotClient({
        connection: RuntimeConnection.forUri(at.copilot, { connectionToken: at.token }),
        ...options,
    });
    finally_(t, () => client.stop());
    await client.start();
    return client;
}

/** A prompt that makes the scripted agent run these steps. */
export const script = (steps) => `script:${JSON.stringify(steps)}`;

/** Waits for a condition. */
export async function until(what, check, patience = 10_000) {
    const deadline = Date.now() + patience;
    for (;;) {
        const found = await check();
        if (found) return found;
        if (Date.now() > deadline) throw new Error(`waited too long until ${what}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
}

/** All files below a folder, as one text. */
export async function contents(path) {
    let all = "";
    for (const entry of await readdir(path, { recursive: true, withFileTypes: true })) {
        if (entry.isFile()) {
            const file = join(entry.parentPath ?? entry.path, entry.name);
            // A file that is being replaced may be missing now.
            all += `${file}\n${await readFile(file, "latin1").catch(() => "")}\n`;
        }
    }
    return all;
}

const missing = (path) => Object.assign(new Error(`there is no ${path}`), { code: "ENOENT" });
const parent = (path) => path.slice(0, path.lastIndexOf("/")) || "/";

/** Client-side storage in memory: the files of each session, by path. `fault` may throw or wait first. */
export class Shelf {
    sessions = new Map();
    calls = [];
    fault = async () => {};

    files(session) {
        if (!this.sessions.has(session)) this.sessions.set(session, { files: new Map(), folders: new Set(["/"]) });
        return this.sessions.get(session);
    }

    text(session, path) {
        return this.files(session).files.get(path);
    }

    /** The functions for the SDK's `createSessionFsProvider`. */
    provider = (session) => {
        const { files, folders } = this.files(session.sessionId);
        const enter = (path) => {
            for (let at = parent(path); !folders.has(at); at = parent(at)) folders.add(at);
        };
        const names = (path) => {
            if (!folders.has(path)) throw missing(path);
            const inside = (name) => parent(name) === path && name !== path;
            const entry = (type) => (name) => ({ name: name.slice(name.lastIndexOf("/") + 1), type });
            return [
                ...[...files.keys()].filter(inside).map(entry("file")),
                ...[...folders].filter(inside).map(entry("directory")),
            ];
        };
        const operations = {
            readFile: async (path) => {
                if (!files.has(path)) throw missing(path);
                return files.get(path);
            },
            writeFile: async (path, content) => {
                enter(path);
                files.set(path, content);
            },
            appendFile: async (path, content) => {
                enter(path);
                files.set(path, (files.get(path) ?? "") + content);
            },
            exists: async (path) => files.has(path) || folders.has(path),
            stat: async (path) => {
                const now = new Date(0).toISOString();
                const size = files.has(path) ? Buffer.byteLength(files.get(path)) : 0;
                if (!files.has(path) && !folders.has(path)) throw missing(path);
                return { isFile: files.has(path), isDirectory: folders.has(path), size, mtime: now, birthtime: now };
            },
            mkdir: async (path) => {
                enter(path);
                folders.add(path);
            },
            readdir: async (path) => names(path).map((entry) => entry.name),
            readdirWithTypes: async (path) => names(path),
            rm: async (path, recursive, force) => {
                if (!files.has(path) && !folders.has(path) && !force) throw missing(path);
                const gone = (name) => name === path || (recursive && name.startsWith(`${path}/`));
                for (const name of [...files.keys()].filter(gone)) files.delete(name);
                for (const name of [...folders].filter(gone)) folders.delete(name);
            },
            rename: async (from, to) => {
                if (files.has(from)) {
                    enter(to);
                    files.set(to, files.get(from));
                    files.delete(from);
                    return;
                }
                if (!folders.has(from)) throw missing(from);
                const moved = (name) => (name === from || name.startsWith(`${from}/`) ? to + name.slice(from.length) : name);
                for (const [name, content] of [...files]) {
                    files.delete(name);
                    files.set(moved(name), content);
                }
                for (const name of [...folders]) {
                    folders.delete(name);
                    folders.add(moved(name));
                }
            },
        };
        const watched = (name) => async (...args) => {
            this.calls.push({ session: session.sessionId, name, args });
            await this.fault(name, args, session.sessionId);
            return operations[name](...args);
        };
        return Object.fromEntries(Object.keys(operations).map((name) => [name, watched(name)]));
    };
}

/** The options of a client with its own storage. */
export const storage = { initialCwd: "/proj", sessionStatePath: "/state", conventions: "posix" };
