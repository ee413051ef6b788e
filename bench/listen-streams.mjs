/** Many open listen streams on raw sockets, which cost the bench little. */
import { connect } from 'node:net';
import { requestOf } from './requests.mjs';

const openMs = 20_000;
/** At once while opening, so that no backlog overflows. */
const atOnce = 64;

function openOne(target) {
  const { bytes } = requestOf(target, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
  return new Promise((resolve, reject) => {
    const socket = connect(target.port, '127.0.0.1');
    socket.setTimeout(openMs, () =>
      socket.destroy(new Error('a listen stream was not acknowledged in time')),
    );
    socket.once('error', reject);
    let text = '';
    socket.on('data', (chunk) => {
      text = (text + chunk).slice(0, 2_000);
      if (!text.includes('subscriptions/acknowledged')) return;
      socket.setTimeout(0);
      socket.removeAllListeners('data').resume();
      resolve(socket);
    });
    socket.once('close', () => reject(new Error(`a listen stream ended: ${text}`)));
    socket.write(bytes);
  });
}

/** Opens this many, each acknowledged; resolves with how to close all. */
export async function openStreams(target, count) {
  const sockets = [];
  while (sockets.length < count) {
    const next = Math.min(atOnce, count - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: next }, () => openOne(target)))));
  }
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}
