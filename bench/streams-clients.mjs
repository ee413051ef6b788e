/** The clients of bench/streams.mjs: listen streams on plain sockets, opened, heard and closed on command. */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { requestOf } from './requests.mjs';

const port = Number(process.argv[2]);
const { bytes } = requestOf({ port, path: '/mcp', isModern: true }, 'subscriptions/listen', {
  notifications: { toolsListChanged: true },
});
const acknowledged = 'notifications/subscriptions/acknowledged';
const changed = 'notifications/tools/list_changed';
const openMs = 60_000;
const inFlightMax = 100;

const open = new Set();
const hearing = { heard: 0, lastAt: 0 };

function openOne() {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let isOpen = false;
    let tail = '';
    socket.on('data', (chunk) => {
      // A notice may be cut anywhere; only its name is looked for.
      const text = tail + chunk.toString('latin1');
      tail = text.slice(1 - acknowledged.length);
      if (!isOpen && text.includes(acknowledged)) {
        isOpen = true;
        open.add(socket);
        tail = '';
        resolve(true);
      }
      if (!text.includes(changed)) return;
      tail = '';
      hearing.heard++;
      hearing.lastAt = Date.now();
    });
    socket.once('error', () => socket.destroy());
    socket.once('close', () => {
      open.delete(socket);
      resolve(false);
    });
    socket.write(bytes);
  });
}

async function openMany(count) {
  const from = Date.now();
  let left = count;
  const opener = async () => {
    while (left > 0 && Date.now() - from < openMs) {
      left--;
      await openOne();
    }
  };
  await Promise.all(Array.from({ length: inFlightMax }, opener));
  hearing.heard = 0;
  return { open: open.size, tookMs: Date.now() - from };
}

async function hear(withinMs) {
  const until = Date.now() + 2 * withinMs + 3_000;
  while (hearing.heard < open.size && Date.now() < until) await sleep(5);
  return { ...hearing };
}

async function closeAll() {
  const sockets = [...open];
  const closed = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
  for (const socket of sockets) socket.destroy();
  await Promise.all(closed);
  return { closed: closed.length };
}

process.on('message', async (command) => {
  if (command.open !== undefined) process.send(await openMany(command.open));
  else if (command.hear) process.send(await hear(command.withinMs));
  else process.send(await closeAll());
});
process.once('disconnect', () => process.exit());
