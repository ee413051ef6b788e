import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import type { ReplyReader } from '../../src/protocol/call.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { openSession } from '../support/legacy-session.ts';
import { callTool, openCall, requestText } from '../support/modern-client.ts';
import {
  type Asked,
  legacyScript,
  modernScript,
  type Scripted,
  startScript,
  tool,
} from '../support/scripted.ts';
import { listenWith, replyTo } from './listener.ts';

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

/** A gateway in front of a server whose one tool answers in its own way. */
async function behind(
  answer: (asked: Asked) => unknown,
  {
    era = 'modern',
    config = {},
    server: more = {},
  }: { era?: 'modern' | 'legacy'; config?: object; server?: object } = {},
): Promise<{ gateway: Gateway; server: Scripted }> {
  const script = era === 'modern' ? modernScript : legacyScript;
  const server = await startScript(
    script({ 'tools/list': () => ({ tools: [tool('x')], ttlMs: 60_000 }), 'tools/call': answer }),
  );
  endings.push(() => server.stop());
  const gateway = await startGateway({ servers: { up: { ...server.server, ...more } }, ...config });
  endings.push(() => gateway.stop());
  return { gateway, server };
}

const json = { 'content-type': 'application/json' };
const holdBytes = 256 * 1024;
/** How an answer ended, without the answer itself, which would fill a screen. */
const endOf = (done: Promise<unknown>): Promise<'whole' | 'broken'> =>
  done.then(
    () => 'whole',
    () => 'broken',
  );
/** Text that shows where bytes went missing, were doubled, or came in another order. */
const counted = (bytes: number): string => {
  let text = '';
  for (let i = 0; text.length < bytes; i++) text += `é${i}\\n`;
  return text;
};

/** That the log says of a call that its answer broke. */
const toldBroken = (gateway: Gateway) =>
  expect
    .poll(() => gateway.lines.filter(({ outcome }) => outcome === 'error'))
    .toMatchObject([{ upstream: 'up', code: 5020, reason: 'broken' }]);

describe('an answer that is longer than what is held', () => {
  const long = counted(3 * holdBytes);
  const members = `"content":[{"type":"text","text":"${long}"}],"n":1.0,"big":12345678901234567890,"x":{"id":1}`;

  test.each([
    [
      'modern',
      'id first',
      `{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete",${members}}}`,
      `{"jsonrpc":"2.0","id":"caller","result":{"resultType":"complete",${members}}}`,
    ],
    [
      'modern',
      'id last',
      `{"result":{"resultType":"complete",${members}},"jsonrpc":"2.0","id":$id}`,
      `{"result":{"resultType":"complete",${members}},"jsonrpc":"2.0","id":"caller"}`,
    ],
    [
      'legacy',
      'id first',
      `{"jsonrpc":"2.0","id":$id,"result":{${members}}}`,
      `{"jsonrpc":"2.0","id":"caller","result":{"resultType":"complete",${members}}}`,
    ],
    [
      'legacy',
      'id last',
      `{"result":{${members}},"jsonrpc":"2.0","id":$id}`,
      `{"result":{${members},"resultType":"complete"},"jsonrpc":"2.0","id":"caller"}`,
    ],
  ] as const)('of a %s server, %s, passes byte for byte', async (era, _, said, passed) => {
    for (const isChunked of [false, true]) {
      const { gateway } = await behind(
        ({ id, response }) => {
          const body = Buffer.from(said.replace('$id', String(id)));
          response.writeHead(200, { ...json, ...(isChunked ? {} : { 'content-length': body.length }) });
          // Cut inside characters and tokens alike.
          for (let at = 0; at < body.length; at += 65_537) response.write(body.subarray(at, at + 65_537));
          response.end();
        },
        { era },
      );
      const { raw, status } = await callTool(gateway.url, 'up__x', {}, { id: 'caller' });
      expect(status).toBe(200);
      expect(raw.equals(Buffer.from(passed))).toBe(true);
    }
  });

  test.each([
    ['with another id at its head', `{"jsonrpc":"2.0","id":7,"result":{${members}}}`],
    ['as an error', `{"jsonrpc":"2.0","id":$id,"error":{"code":1,"message":"${long}"}}`],
    ['as a list', `[{"jsonrpc":"2.0","id":$id,"result":{${members}}}]`],
  ])('%s is no answer, and the client is told so', async (_, said) => {
    const { gateway } = await behind(({ send }) => send(said));
    const { response } = await callTool(gateway.url, 'up__x');
    expect(response?.error).toMatchObject({ code: 5020, message: expect.stringContaining('server `up`') });
  });

  test.each([
    ['carries another id at its end', (body: string) => body.replace(/"id":\d+\}$/, '"id":7}')],
    [
      'holds bytes that are no UTF-8',
      (body: string) =>
        Buffer.concat([Buffer.from(body.slice(0, -200)), Buffer.of(0xff), Buffer.from(body.slice(-200))]),
    ],
    ['ends in its middle', (body: string) => body.slice(0, -100)],
  ])('that %s breaks the connection, and is never ended cleanly', async (_, spoil) => {
    const { gateway } = await behind(({ id, response }) => {
      response.writeHead(200, json);
      response.end(spoil(`{"result":{"resultType":"complete",${members}},"jsonrpc":"2.0","id":${id}}`));
    });
    const open = await openCall(gateway.url, 'tools/call', { name: 'up__x' });
    expect(await endOf(open.done)).toBe('broken');
    await toldBroken(gateway);
  });

  test.each([true, false])(
    'whose server dies in the middle breaks the connection (with its length: %s)',
    async (hasLength) => {
      const { gateway } = await behind(({ id, response }) => {
        const body = Buffer.from(
          `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete",${members}}}`,
        );
        response.writeHead(200, { ...json, ...(hasLength ? { 'content-length': body.length } : {}) });
        response.write(body.subarray(0, 2 * holdBytes));
        setTimeout(() => response.destroy(), 50);
      });
      const open = await openCall(gateway.url, 'tools/call', { name: 'up__x' });
      expect(await endOf(open.done)).toBe('broken');
    },
  );

  test.each([true, false])(
    'that ends in its middle after a plain head breaks the connection (with its length: %s)',
    async (hasLength) => {
      const { gateway } = await behind(({ id, response }) => {
        const body = Buffer.from(
          `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete",${members.slice(0, -100)}`,
        );
        response.writeHead(200, { ...json, ...(hasLength ? { 'content-length': body.length } : {}) });
        response.end(body);
      });
      const open = await openCall(gateway.url, 'tools/call', { name: 'up__x' });
      expect(await endOf(open.done)).toBe('broken');
      await toldBroken(gateway);
    },
  );

  test('is the same for each of many clients at once, of which some read slowly and some go away', async () => {
    const saidTo = (n: number): string => `"${n}:${String(n % 10).repeat(2 * 1024 * 1024)}"`;
    let calls = 0;
    const { gateway } = await behind(({ id, response, params }) => {
      calls += 1;
      const n = (params as { arguments: { n: number } }).arguments.n;
      const body = Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"text":${saidTo(n)}}}`);
      response.writeHead(200, { ...json, ...(n % 2 === 0 ? { 'content-length': body.length } : {}) });
      response.end(body);
    });
    const one = async (n: number): Promise<boolean> => {
      const response = await slowClient(gateway.url, n);
      const chunks: Buffer[] = [];
      for await (const chunk of response as AsyncIterable<Buffer>) {
        chunks.push(chunk);
        if (n % 5 === 0) response.destroy();
        else if (n % 3 === 0) await sleep(1);
      }
      const expected = `{"jsonrpc":"2.0","id":1,"result":{"text":${saidTo(n)}}}`;
      return Buffer.concat(chunks).toString() === expected;
    };
    const done = await Promise.all(Array.from({ length: 40 }, (_, n) => one(n).catch(() => n % 5 === 0)));
    expect(calls).toBe(40);
    expect(done.map((isRight, n) => isRight || n % 5 === 0)).toEqual(done.map(() => true));
  });

  test('is not the end of the gateway when it breaks: the next call is answered', async () => {
    let calls = 0;
    const { gateway } = await behind(({ id, response }) => {
      calls += 1;
      if (calls > 1) return { content: [] };
      response.writeHead(200, json);
      response.write(`{"jsonrpc":"2.0","id":${id},"result":{${members}`);
      setTimeout(() => response.destroy(), 20);
      return undefined;
    });
    expect(await endOf(callTool(gateway.url, 'up__x'))).toBe('broken');
    expect((await callTool(gateway.url, 'up__x')).response?.result).toMatchObject({ content: [] });
  });
});

/** Answers `bytes` bytes of text as fast as they are taken, and notes how many were. */
function pouring(bytes: number) {
  const state = { taken: 0, isClosed: false, hash: createHash('sha256') };
  const pour = async (id: unknown, response: ServerResponse): Promise<void> => {
    const closed = new Promise<void>((resolve) => {
      response.on('close', () => {
        state.isClosed = true;
        resolve();
      });
    });
    const drained = (): Promise<void> => new Promise((resolve) => response.once('drain', resolve));
    response.writeHead(200, json);
    response.write(`{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","text":"`);
    for (let i = 0; state.taken < bytes && !state.isClosed; i++) {
      const piece = Buffer.from(`${i},`.padEnd(65_536, String(i % 10)));
      state.hash.update(piece);
      if (!response.write(piece)) await Promise.race([drained(), closed]);
      state.taken += piece.length;
    }
    response.end('"}}');
  };
  return { state, answer: ({ id, response }: Asked) => void pour(id, response) };
}

async function slowClient(url: string, n = 0): Promise<IncomingMessage> {
  const sent = request(url, {
    method: 'POST',
    agent: false,
    headers: {
      'content-type': 'application/json',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'up__x',
    },
  });
  sent.on('error', () => undefined);
  sent.end(requestText('tools/call', { name: 'up__x', arguments: { n } }));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  response.pause();
  return response;
}

describe('a client that reads slowly', () => {
  const bytes = 60_000_000;

  test('slows its server down: little is held for it, and all of it arrives in the end', async () => {
    const { state, answer } = pouring(bytes);
    const { gateway } = await behind(answer);
    const response = await slowClient(gateway.url);
    let before = -1;
    while (state.taken !== before) {
      before = state.taken;
      await sleep(150);
    }
    // What fits into the buffers of three sockets, and no more.
    expect(state.taken).toBeLessThan(25_000_000);
    const head = '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","text":"';
    const hash = createHash('sha256');
    let got = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      const from = Math.max(0, head.length - got);
      const to = Math.min(chunk.length, head.length + state.taken - got);
      if (to > from) hash.update(chunk.subarray(from, to));
      got += chunk.length;
    }
    expect(got).toBe(head.length + state.taken + 3);
    expect(state.taken).toBeGreaterThanOrEqual(bytes);
    expect(hash.digest('hex')).toBe(state.hash.digest('hex'));
  });

  test('and goes away closes the connection to its server', async () => {
    const { state, answer } = pouring(bytes);
    const { gateway } = await behind(answer);
    const response = await slowClient(gateway.url);
    await expect.poll(() => state.taken).toBeGreaterThan(holdBytes);
    response.destroy();
    await expect.poll(() => state.isClosed).toBe(true);
    expect(state.taken).toBeLessThan(bytes);
  });

  test('does not slow down another', async () => {
    const { answer } = pouring(bytes);
    let calls = 0;
    const { gateway } = await behind((asked) => {
      calls += 1;
      return calls === 1 ? answer(asked) : { content: [] };
    });
    const response = await slowClient(gateway.url);
    await sleep(200);
    const startMs = performance.now();
    expect((await callTool(gateway.url, 'up__x')).response?.result).toBeDefined();
    // The other one would take its 60 MB for ever.
    expect(performance.now() - startMs).toBeLessThan(15_000);
    response.destroy();
  });
});

describe('a long answer on its way', () => {
  const head = (id: unknown): string =>
    `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","text":"`;
  /** Sends what is longer than what is held, then more every so often, then the end. */
  const trickling = ({ pieces, everyMs }: { readonly pieces: number; readonly everyMs: number }) => {
    const state = { isClosed: false };
    const answer = ({ id, response }: Asked): void => {
      response.on('close', () => {
        state.isClosed = true;
      });
      response.writeHead(200, json);
      response.write(head(id) + 'x'.repeat(2 * holdBytes));
      let sent = 0;
      const timer = setInterval(() => {
        if (sent++ < pieces) response.write('more ');
        else response.end('"}}');
        if (sent > pieces || state.isClosed) clearInterval(timer);
      }, everyMs);
    };
    return { state, answer };
  };

  test('that stalls is given up when its time is over: the connection breaks, and so does that of its server', async () => {
    const { state, answer } = trickling({ pieces: 1, everyMs: 60_000 });
    const { gateway } = await behind(answer, { server: { timeout: '1s' } });
    const open = await openCall(gateway.url, 'tools/call', { name: 'up__x' });
    const startMs = performance.now();
    expect(await endOf(open.done)).toBe('broken');
    // The next piece would come after a minute.
    expect(performance.now() - startMs).toBeLessThan(15_000);
    await expect.poll(() => state.isClosed).toBe(true);
  });

  test('has its time anew with each piece', async () => {
    const { answer } = trickling({ pieces: 24, everyMs: 100 });
    const { gateway } = await behind(answer, { server: { timeout: '2s', maxTimeout: '30s' } });
    const { raw } = await callTool(gateway.url, 'up__x');
    expect(raw.toString().endsWith(`${'more '.repeat(24)}"}}`)).toBe(true);
  });

  test('has no more than its longest time, whatever comes', async () => {
    const { answer } = trickling({ pieces: 1_000, everyMs: 50 });
    const { gateway } = await behind(answer, { server: { timeout: '1s', maxTimeout: '1100ms' } });
    const startMs = performance.now();
    expect(await endOf(callTool(gateway.url, 'up__x'))).toBe('broken');
    // All of it would take 50 s.
    expect(performance.now() - startMs).toBeLessThan(15_000);
  });

  test('whose client reads nothing is given up when its time is over', async () => {
    const { state, answer } = pouring(60_000_000);
    const { gateway } = await behind(answer, { server: { timeout: '1s' } });
    await slowClient(gateway.url);
    await expect.poll(() => state.isClosed).toBe(true);
  });

  test('is let to end when the gateway stops', async () => {
    const { answer } = trickling({ pieces: 10, everyMs: 100 });
    const { gateway } = await behind(answer);
    const open = await openCall(gateway.url, 'tools/call', { name: 'up__x' });
    await gateway.app.stop(5_000);
    expect((await open.done).raw.toString().endsWith('more "}}')).toBe(true);
  });

  test('takes the room of a call until its last byte', async () => {
    let end: () => void = () => undefined;
    const { gateway } = await behind(
      ({ id, response }) => {
        response.writeHead(200, json).write(head(id) + 'x'.repeat(2 * holdBytes));
        end = () => response.end('"}}');
      },
      { config: { limits: { callsInFlight: 1 } } },
    );
    const open = await openCall(gateway.url, 'tools/call', { name: 'up__x' });
    expect((await callTool(gateway.url, 'up__x')).response?.error?.code).toBe(4290);
    end();
    await open.done;
    await expect.poll(async () => (await callTool(gateway.url, 'up__y')).response?.error?.code).toBe(-32602);
  });
});

test('an answer over limits.result is refused where it says its length, and breaks where it does not', async () => {
  const text = 'x'.repeat(3_000_000);
  const config = { limits: { result: '1MiB' } };
  const { gateway } = await behind(() => ({ content: [{ type: 'text', text }] }), { config });
  expect(await endOf(callTool(gateway.url, 'up__x'))).toBe('broken');
  const { gateway: second } = await behind(
    ({ id, response }) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id, result: { text } });
      response.writeHead(200, { ...json, 'content-length': body.length }).end(body);
    },
    { config },
  );
  const { response } = await callTool(second.url, 'up__x');
  expect(response?.error).toMatchObject({ code: 5020, message: expect.stringContaining('1048576') });
});

test('an answer that breaks on a stream that is open already ends there with an error', async () => {
  const readers: ReplyReader[] = [];
  const listener = await listenWith(
    async (call) => {
      if (call.request.method === 'server/discover')
        return replyTo(call, '{"resultType":"complete","capabilities":{}}');
      await opened;
      return {
        ...replyTo(call),
        rest: {
          read: (reader) => readers.push(reader),
          resume: () => undefined,
          destroy: () => undefined,
        },
      };
    },
    { silenceMs: 20 },
  );
  endings.push(() => listener.stop());
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const session = await openSession(listener.url);
  // The head comes with the first comment.
  const answer = await session.open('tools/call', { name: 'x' });
  expect(answer.headers['content-type']).toBe('text/event-stream');
  open();
  await expect.poll(() => readers.length).toBe(1);
  readers[0]?.fail(new Error('it went away'));
  const { response } = await answer.done;
  expect(response).toMatchObject({
    id: 2,
    error: { code: 5021, message: 'The answer broke off: it went away' },
  });
});

test.each([
  ['is no JSON behind its head', '"ttlMs":1,"content":nonsense,,,'],
  ['is nested too deep', `"ttlMs":1,"content":${'['.repeat(300)}${']'.repeat(300)}`],
])(
  'a legacy client is told of an answer of its server that %s, and the log of no bug',
  async (_, members) => {
    const { gateway } = await behind(({ id, response }) => {
      response.writeHead(200, json);
      response.end(`{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete",${members}}}`);
    });
    const session = await openSession(gateway.url);
    const { response } = await session.ask('tools/call', { name: 'up__x' });
    expect(response?.error).toMatchObject({
      code: 5020,
      message: expect.stringContaining('server `up` gave a broken answer'),
    });
    expect(gateway.lines.filter(({ msg }) => String(msg).includes('fault of the gateway'))).toEqual([]);
  },
);
