// Measures a session manager of pi or of oh-my-pi: node measure.mjs MODULE FILE ENTRY FOLDER
import { statSync } from "node:fs";
import { dirname } from "node:path";

const [module, file, deepest, folder] = process.argv.slice(2);
const { SessionManager } = await import(module);
// Only oh-my-pi has the last argument: without it, it would record the open file elsewhere.
const open = (file, folder) => SessionManager.open(file, folder, undefined, { suppressBreadcrumb: true });
const session = await open(file, dirname(file));

async function timed(what) {
	const began = performance.now();
	const found = await what();
	return [performance.now() - began, found];
}

function count(roots) {
	let rows = 0;
	const waiting = [...roots];
	while (waiting.length > 0) {
		rows += 1;
		waiting.push(...waiting.pop().children);
	}
	return rows;
}

const [rows, tree] = await timed(() => session.getTree());
const [branch, path] = await timed(() => session.getBranch(deepest));
const [context, built] = await timed(() => session.buildSessionContext());
// It is written beside the session.
const [branched, made] = await timed(() => session.createBranchedSession(deepest));
console.log(JSON.stringify({
	rows, branch, context, branched,
	found: {
		rows: count(tree), branch: path.length, messages: built.messages.length, branchedBytes: statSync(made).size,
	},
}));
process.exit(0);
