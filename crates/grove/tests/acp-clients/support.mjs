// A data folder with a host for one file of tests, and programs that use it.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

export const grove = process.env.GROVE_BIN;
assert.ok(grove, "GROVE_BIN names the program");
const root = mkdtempSync(join(tmpdir(), "grove-acp-"));
export const [home, work, data] = ["home", "work", "data"].map((name) => join(root, name));
[home, work].forEach((folder) => mkdirSync(folder));
export const env = { PATH: process.env.PATH, HOME: home, GROVE_LISTEN: "127.0.0.1:0" };

/** Runs a program to its end, and returns its stdout. It is answered whenever it asks a question. */
export const run = (program, args, { env: more, question, answer } = {}) =>
  new Promise((resolve, reject) => {
    const options = { cwd: work, timeout: 60_000, env: { ...env, ...more } };
    const child = execFile(program, args, options, (error, stdout, stderr) =>
      error ? reject(new Error(`${error.message}\n${stdout}\n${stderr}`)) : resolve(stdout),
    );
    child.stdout.on("data", (text) => {
      if (question && text.includes(question)) child.stdin.write(answer);
    });
  });

export const command = (...args) => run(grove, [...args, "--data-dir", data]);
export const script = (...steps) => `script:${JSON.stringify(steps)}`;
export const tool = { tool: { name: "shell", input: "ls", output: "a.txt", permission: "shell" } };

/** Starts the host, and returns its address for editors and its token. */
export async function startHost() {
  const { http } = JSON.parse(await command("start", "--json"));
  return { url: `${http.replace("http", "ws")}/acp`, token: readFileSync(join(data, "token"), "utf8").trim() };
}

/** Starts `grove acp` with pipes. */
export const startAgent = () =>
  spawn(grove, ["acp", "--data-dir", data], { cwd: work, env, stdio: ["pipe", "pipe", "inherit"] });

after(async () => {
  await command("stop").catch(() => {});
  rmSync(root, { recursive: true, force: true });
});
