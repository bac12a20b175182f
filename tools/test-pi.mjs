// What test-pi needs of JavaScript: `drive JOB` runs turns on a host; `open MODULE FILE` prints what pi finds in a log;
// `append MODULE FILE` lets pi append to it.
import { dirname } from "node:path";

const [what, ...rest] = process.argv.slice(2);
// Nothing here takes longer.
setTimeout(() => {
	throw new Error("it takes too long");
}, 50_000).unref();

async function drive(job) {
	const { WebSocket } = await import("ws");
	const socket = new WebSocket(`${job.ws}?tkn=${job.token}`);
	const frames = [];
	let wake = () => {};
	socket.on("message", (data) => {
		frames.push(JSON.parse(data));
		wake();
	});
	socket.on("close", (code, reason) => {
		throw new Error(`the host closed the connection: ${code} ${reason}`);
	});
	await new Promise((resolve) => socket.on("open", resolve));

	// The next frame that is wanted; what comes before it is passed to `other`.
	async function next(wanted, other = () => {}) {
		for (;;) {
			while (frames.length === 0) await new Promise((resolve) => (wake = resolve));
			const frame = frames.shift();
			if (frame.error) throw new Error(JSON.stringify(frame.error));
			const envelope = frame.method === "action" ? frame.params.envelope ?? frame.params : undefined;
			if (envelope?.rejectionReason) throw new Error(`refused: ${envelope.rejectionReason}`);
			if (wanted(frame, envelope?.action)) return frame;
			if (envelope) other(envelope.action);
		}
	}
	let id = 0;
	async function call(method, params) {
		const asked = ++id;
		socket.send(JSON.stringify({ jsonrpc: "2.0", id: asked, method, params }));
		return (await next((frame) => frame.id === asked)).result;
	}
	let clientSeq = 0;
	function dispatch(action) {
		const params = { clientSeq: ++clientSeq, action: { session: job.session, ...action } };
		socket.send(JSON.stringify({ jsonrpc: "2.0", method: "dispatchAction", params }));
	}

	const clientId = `test-pi-${process.pid}`;
	await call("initialize", { protocolVersion: 1, clientId, initialSubscriptions: [] });
	if (job.create) await call("createSession", { session: job.session });
	const snapshot = await call("subscribe", { resource: job.session });
	if (snapshot.state.lifecycle !== "ready") await next((_, action) => action?.type === "session/ready");
	for (const [n, turn] of job.turns.entries()) {
		const turnId = `turn-${process.pid}-${n}`;
		const text = turn.text ?? `script:${JSON.stringify(turn.steps)}`;
		dispatch({ type: "session/turnStarted", turnId, userMessage: { text } });
		const ends = ["session/turnComplete", "session/turnCancelled", "session/error"];
		const end = await next(
			(_, action) => ends.includes(action?.type),
			(action) => {
				if (action.type !== "session/permissionRequest") return;
				const { requestId } = action.request;
				const approved = turn.approve ?? true;
				dispatch({ type: "session/permissionResolved", turnId, requestId, approved });
			},
		);
		const { type } = (end.params.envelope ?? end.params).action;
		if (type !== turn.end) throw new Error(`turn ${n} ended with ${type}, not ${turn.end}`);
	}
	process.exit(0);
}

async function manager(module, file) {
	const { SessionManager } = await import(module);
	return SessionManager.open(file, dirname(file));
}

async function open(module, file) {
	const session = await manager(module, file);
	return {
		header: session.getHeader(),
		leafId: session.getLeafId(),
		entries: session.getEntries(),
		branch: session.getBranch(),
		context: session.buildSessionContext(),
	};
}

async function append(module, file) {
	const session = await manager(module, file);
	const usage = {
		input: 1, output: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 3,
		cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
	};
	const messages = [
		{ role: "user", content: [{ type: "text", text: "A question from pi" }], timestamp: Date.now() },
		{
			role: "assistant", content: [{ type: "text", text: "An answer from pi" }], api: "test", provider: "test",
			model: "test-1", usage, stopReason: "stop", timestamp: Date.now(),
		},
	];
	return { ids: messages.map((message) => session.appendMessage(message)), messages };
}

const works = { drive: (job) => drive(JSON.parse(job)), open, append };
console.log(JSON.stringify(await works[what](...rest)));
