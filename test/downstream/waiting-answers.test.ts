/** Several requests at once on one connection whose client goes away. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import type { Call } from '../../src/protocol/call.ts';
import { requestText } from '../support/modern-client.ts';
import { listenWith, replyTo } from './listener.ts';

function requestOf(id: number): string {
  const body = requestText('tools/call', { name: 'x' }, { id });
  const head = [
    'POST /mcp HTTP/1.1',
    'host: localhost',
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    'mcp-protocol-version: 2026-07-28',
    'mcp-method: tools/call',
    'mcp-name: x',
    `content-length: ${body.length}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

test('each call is cancelled when its client goes away, be its answer the next of the connection or not', async () => {
  const calls: Call[] = [];
  const listener = await listenWith((call) => {
    calls.push(call);
    // The first is answered, so that others have moved up.
    return calls.length === 1 ? Promise.resolve(replyTo(call)) : new Promise(() => undefined);
  });
  const socket = connect(listener.port, '127.0.0.1');
  for (let id = 1; id <= 30; id++) socket.write(requestOf(id));
  await once(socket, 'data');
  await expect.poll(() => calls.length).toBe(30);
  socket.destroy();
  await expect.poll(() => calls.filter(({ signal }) => signal.cause !== undefined).length).toBe(29);
  expect(calls[0]?.signal.cause).toBeUndefined();
  await listener.stop();
});
