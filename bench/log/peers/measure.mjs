// Measures a session manager of pi or of oh-my-pi: node measure.mjs MODULE load FILE, or MODULE append FOLDER MESSAGES.
import { readFileSync } from "node:fs";
import { dirname } from "node:path";

const [module, what, place, messages] = process.argv.slice(2);
const { SessionManager } = await import(module);

function peakBytes() {
	const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))[1];
	return Number(kibibytes) * 1024;
}

async function load() {
	const began = performance.now();
	// Only oh-my-pi has the last argument: without it, it would record the open file elsewhere.
	const session = await SessionManager.open(place, dirname(place), undefined, { suppressBreadcrumb: true });
	const milliseconds = performance.now() - began;
	const peak = peakBytes();
	const found = {
		entries: session.getEntries().length,
		leaf: session.getLeafId(),
		branch: session.getBranch().length,
	};
	return { milliseconds, peakBytes: peak, found };
}

function append() {
	// The messages of each session; the sessions alternate.
	const sessions = JSON.parse(readFileSync(messages, "utf8"));
	const managers = sessions.map(() => SessionManager.create("/", place));
	const turns = sessions[0].flatMap((_, n) => sessions.map((messages, at) => [managers[at], messages[n]]));
	const waits = [];
	let bytes = 0;
	const began = performance.now();
	for (const [manager, message] of turns) {
		const before = performance.now();
		manager.appendMessage(message);
		waits.push(performance.now() - before);
	}
	const total = performance.now() - began;
	for (const manager of managers) bytes += readFileSync(manager.getSessionFile()).length;
	waits.sort((a, b) => a - b);
	const percentile = (part) => waits[Math.ceil(waits.length * part) - 1];
	return {
		totalMilliseconds: total, p50Milliseconds: percentile(0.5), p99Milliseconds: percentile(0.99), bytes, syncs: 0,
	};
}

console.log(JSON.stringify(what === "load" ? await load() : append()));
process.exit(0);
