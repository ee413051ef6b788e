/** Answers that are held in memory which others had before: nobody gets what is another's, however slowly clients read. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type LentMemory, watchLent } from '../support/lent.ts';
import { call, requestText, textOf } from '../support/modern-client.ts';
import { modernScript, type Scripted, startScript, tool } from '../support/scripted.ts';

let upstream: Scripted;
let gateway: Gateway;
let lent: LentMemory;

/** What the tool says to an argument: from 20 KB, so that no two of neighbours are alike anywhere. */
const saying = (n: number): string => `${String(n).padStart(7, '0')}-`.repeat(2_500 + (n % 20) * 1_000);

beforeAll(async () => {
  lent = watchLent();
  upstream = await startScript(
    modernScript({
      'tools/list': () => ({ tools: [tool('say')] }),
      'tools/call': ({ id, params, response }) => {
        const { n } = params['arguments'] as { n: number };
        const content = JSON.stringify([{ type: 'text', text: saying(n) }]);
        const text = `{"jsonrpc":"2.0","id":${id},"result":{"content":${content},"resultType":"complete"}}`;
        // Only of an answer that says its length is known how much memory it needs.
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
        response.end(text);
      },
    }),
  );
  gateway = await startGateway({ servers: { up: upstream.server } });
});
afterAll(async () => {
  lent?.restore();
  await gateway?.stop();
  await upstream?.stop();
});

afterEach(() => expect(lent.faults).toEqual([]));

const paramsOf = (n: number) => ({ name: 'up__say', arguments: { n } });

function requestOf(n: number): string {
  const body = requestText('tools/call', paramsOf(n), { id: n });
  const head = [
    'POST /mcp HTTP/1.1',
    `host: ${new URL(gateway.url).host}`,
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    'mcp-protocol-version: 2026-07-28',
    'mcp-method: tools/call',
    'mcp-name: up__say',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

/** Reads so many answers that have come one after the other. */
async function answersOn(socket: Socket, count: number): Promise<string[]> {
  const chunks: Buffer[] = [];
  const found: string[] = [];
  let bytes = Buffer.alloc(0);
  const take = (): void => {
    bytes = Buffer.concat([bytes, ...chunks.splice(0)]);
    for (;;) {
      const end = bytes.indexOf('\r\n\r\n');
      const length = Number(
        /content-length: (\d+)/i.exec(bytes.toString('latin1', 0, Math.max(0, end)))?.[1],
      );
      if (end < 0 || bytes.length < end + 4 + length) return;
      found.push(bytes.toString('utf8', end + 4, end + 4 + length));
      bytes = bytes.subarray(end + 4 + length);
    }
  };
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.resume();
  while (found.length < count) {
    await once(socket, 'data');
    take();
  }
  return found;
}

test('answers to a client that reads nothing for long are its own when it reads them at last', async () => {
  const slow = 120;
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.pause();
  // So many that no kernel takes them all, sent before any is read.
  for (let n = 0; n < slow; n++) socket.write(requestOf(n));
  for (let round = 0; round < 10; round++)
    await Promise.all(
      Array.from({ length: 30 }, async (_, at) => {
        const n = 1_000 + round * 30 + at;
        expect(textOf(await call(gateway.url, 'tools/call', paramsOf(n), { id: n }))).toBe(saying(n));
      }),
    );
  const answers = await answersOn(socket, slow);
  for (const [n, answer] of answers.entries()) {
    const { id, result } = JSON.parse(answer) as { id: number; result: { content: { text: string }[] } };
    expect(id).toBe(n);
    expect(result.content[0]?.text).toBe(saying(n));
  }
  socket.destroy();
});

test("answers are each caller's own while others leave in the middle of theirs", async () => {
  const leaving = Array.from({ length: 20 }, async (_, at) => {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write(requestOf(at) + requestOf(at + 20));
    if (at % 2 === 0) await once(socket, 'data');
    socket.destroy();
  });
  const staying = Array.from({ length: 60 }, async (_, at) => {
    const n = 5_000 + at;
    expect(textOf(await call(gateway.url, 'tools/call', paramsOf(n), { id: n }))).toBe(saying(n));
  });
  await Promise.all([...leaving, ...staying]);
});
