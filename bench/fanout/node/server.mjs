// A common broadcast server: one JSON.stringify and one send for each client and message.
import { WebSocketServer } from 'ws';

const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
const say = (client, action, serverSeq) =>
	client.send(JSON.stringify({ jsonrpc: '2.0', method: 'action', params: { envelope: { action, serverSeq } } }));

let serverSeq = 0;
const broadcast = (action) => {
	serverSeq += 1;
	for (const client of server.clients) {
		say(client, action, serverSeq);
	}
};

// Each delta has its own turn of the event loop, as if an agent had sent it, so that sockets drain in between.
// With a delay they are due at fixed times; a late one is sent at once.
const stream = ({ session, turnId, content, deltas, delayMs }) => {
	const began = performance.now();
	let sent = 0;
	const next = () => {
		broadcast({ session, type: 'session/delta', turnId, content });
		sent += 1;
		if (sent < deltas) {
			const wait = began + sent * delayMs - performance.now();
			wait > 0 ? setTimeout(next, wait) : setImmediate(next);
		}
	};
	next();
};

server.on('connection', (client) => {
	client.on('message', (data) => {
		const ask = JSON.parse(data);
		ask.ask === 'stream' ? stream(ask) : broadcast({ session: ask.session, type: 'session/modelChanged', model: ask.model });
	});
	client.on('error', () => client.terminate());
});

server.on('listening', () => {
	console.log(JSON.stringify({ ws: `ws://127.0.0.1:${server.address().port}/`, pid: process.pid }));
});

// It ends with the process that started it.
process.stdin.on('end', () => process.exit(0)).resume();
