// Measures a server of the SDK: node measure.mjs JOB
//
// JOB is JSON (`Job` in src/job.rs). Prints one line of JSON: the milliseconds of each step, in order.
// Any unexpected result ends it with an error.

import assert from "node:assert/strict";
import { approveAll, CopilotClient, RuntimeConnection } from "@github/copilot-sdk";

const job = JSON.parse(process.argv[2]);
const found = { ping: [], create: [], send: [], resume: [], read: [] };
const options = { ...job.session, streaming: true, onPermissionRequest: approveAll };
const client = new CopilotClient({ ...reached(job.server), logLevel: "none" });

/** The connection of the SDK to the server: at an address, or through the pipes of a program that it starts. */
function reached({ address, token, program, args, env }) {
	if (address) return { connection: RuntimeConnection.forUri(address, { connectionToken: token }) };
	return { connection: RuntimeConnection.forStdio({ path: program, args }), env, useLoggedInUser: false };
}

async function timed(into, what) {
	const began = performance.now();
	const result = await what();
	into.push(performance.now() - began);
	return result;
}

async function ping(into) {
	const answer = await timed(into, () => client.ping("hello"));
	assert.match(answer.message, /hello/);
	assert.equal(answer.protocolVersion, 3);
}

async function create(into) {
	const session = await timed(into, () => client.createSession(options));
	assert.match(session.sessionId, /^[0-9a-f-]{36}$/);
	return session;
}

async function send(into, session) {
	// It waits for `session.idle`, and returns the last message.
	const last = await timed(into, () => session.sendAndWait({ prompt: job.prompt }, job.patienceMs));
	assert.equal(last?.data.content, job.answer);
}

async function resume(wanted) {
	const session = await timed(found.resume, () => client.resumeSession(wanted.session, options));
	assert.equal(session.sessionId, wanted.session);
	if (job.reads) {
		const events = await timed(found.read, () => session.getEvents());
		// A server may add events, for example about the resume: they come after the stored ones.
		assert.ok(events.length >= wanted.events, `${events.length} of ${wanted.events} events`);
		assert.equal(events[0].id, wanted.first);
		assert.equal(events[wanted.events - 1].id, wanted.last);
		events.slice(1, wanted.events).forEach((event, n) => assert.equal(event.parentId, events[n].id));
	}
	if (job.sendsAfterResume) await send([], session);
	await session.disconnect();
}

await client.start();
// The first run of each step may take longer on both sides.
for (let n = 0; n < job.warmups; n += 1) {
	await ping([]);
	const session = await create([]);
	await send([], session);
	await session.disconnect();
}
for (let n = 0; n < job.pings; n += 1) await ping(found.ping);
for (let n = 0; n < job.creates; n += 1) {
	const session = await create(found.create);
	await session.disconnect();
}
if (job.sends > 0) {
	const session = await create([]);
	await send([], session);
	for (let n = 0; n < job.sends; n += 1) await send(found.send, session);
	// Detects lost prompts: there must be a user message for each.
	const said = (await session.getEvents()).filter((event) => event.type === "user.message");
	assert.equal(said.length, job.sends + 1);
	await session.disconnect();
}
for (const wanted of job.resumes) await resume(wanted);
await client.stop();
console.log(JSON.stringify(found));
