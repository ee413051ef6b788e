import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  type Call,
  okOutcome,
  type Reply,
  type ReplyReader,
  type ReplyRest,
} from '../../src/protocol/call.ts';
import { RpcError } from '../../src/protocol/errors.ts';
import { idOf } from '../../src/protocol/message.ts';
import { call, openCall, requestText } from '../support/modern-client.ts';
import { listening, replyTo } from './listener.ts';

const listen = listening();

const notice = (text = 'x'): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"x":"${text}"}}`);

describe('a reply', () => {
  test('that nothing goes before is JSON with its length', async () => {
    const { url } = await listen((one) => Promise.resolve(replyTo(one)));
    const answer = await call(url, 'tools/list', {}, { id: 'a' });
    expect(answer.raw.toString()).toBe('{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete"}}');
    expect([answer.status, answer.headers['content-type'], answer.headers['content-length']]).toEqual([
      200,
      'application/json',
      String(answer.raw.length),
    ]);
  });

  test('of any size comes whole', async () => {
    for (const bytes of [16_000, 17_000, 3_000_000]) {
      const { url } = await listen((one) => Promise.resolve(replyTo(one, `{"x":"${'é'.repeat(bytes)}"}`)));
      const answer = await call(url, 'tools/list');
      expect(answer.response?.result).toEqual({ x: 'é'.repeat(bytes) });
    }
  });

  test('that is an error has the status that the specification binds to it', async () => {
    for (const status of [200, 400, 404]) {
      const { url } = await listen(() =>
        Promise.reject(new RpcError(-32601, 'no', { status, data: { a: 1 } })),
      );
      const answer = await call(url, 'tools/list', {}, { id: 'a' });
      expect([answer.status, JSON.parse(answer.raw.toString())]).toEqual([
        status,
        { jsonrpc: '2.0', id: 'a', error: { code: -32601, message: 'no', data: { a: 1 } } },
      ]);
    }
  });

  test('that a fault of the gateway prevents is an internal error: the cause is in the log, and nowhere else', async () => {
    const listener = await listen(() => Promise.reject(new TypeError('secret.x is not a function')));
    const answer = await call(listener.url, 'tools/list');
    expect([answer.status, answer.response?.error?.code]).toEqual([200, -32603]);
    expect(answer.raw.toString()).not.toContain('secret');
    expect(listener.lines.join('')).toContain('secret.x is not a function');
  });
});

test('a reply that can not be written costs its own connection alone, and the log tells why', async () => {
  let status = 1;
  const listener = await listen((one) => Promise.resolve({ ...replyTo(one), status }));
  await expect(call(listener.url, 'tools/list')).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(listener.lines.join('')).toContain('an answer could not be written');
  status = 200;
  expect((await call(listener.url, 'tools/list')).status).toBe(200);
});

describe('notifications before the reply', () => {
  test('make it an event stream that no proxy holds back, and come first', async () => {
    const { url } = await listen((one) => {
      one.notify(notice('first'));
      one.notify(notice('second'));
      return Promise.resolve(replyTo(one));
    });
    const answer = await call(url, 'tools/list');
    expect(answer.raw.toString()).toBe(
      [notice('first'), notice('second'), '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}']
        .map((message) => `event: message\ndata: ${message}\n\n`)
        .join(''),
    );
    expect(answer.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    });
  });

  test('are sent at once, not with the reply', async () => {
    const { url } = await listen((one) => {
      one.notify(notice());
      return new Promise(() => undefined);
    });
    const open = await openCall(url, 'tools/list');
    expect((await open.next()).method).toBe('notifications/progress');
    open.close();
  });

  test('in many lines are one event', async () => {
    const { url } = await listen((one) => {
      one.notify(Buffer.from('{\r\n  "jsonrpc": "2.0",\n  "method": "x"\n}'));
      return Promise.resolve(replyTo(one, '{\n  "a": 1\r\n}'));
    });
    const answer = await call(url, 'tools/list');
    expect(answer.messages).toMatchObject([{ method: 'x' }, { result: { a: 1 } }]);
    expect(answer.raw.toString().split('\n\n')).toHaveLength(3);
  });

  test('that come after the reply are not sent', async () => {
    let late: Call | undefined;
    const { url } = await listen((one) => {
      late = one;
      one.notify(notice('early'));
      return Promise.resolve(replyTo(one));
    });
    const answer = await call(url, 'tools/list');
    late?.notify(notice('late'));
    expect(answer.raw.toString()).not.toContain('late');
  });

  test('do not turn an error into anything but an event on HTTP 200', async () => {
    const { url } = await listen((one) => {
      one.notify(notice());
      return Promise.reject(new RpcError(-32021, 'no', { status: 400 }));
    });
    const answer = await call(url, 'tools/list', {}, { id: 'a' });
    expect([answer.status, answer.response]).toEqual([
      200,
      { jsonrpc: '2.0', id: 'a', error: { code: -32021, message: 'no' } },
    ]);
  });
});

describe('silence', () => {
  test('becomes a stream with comments after a while, and the reply is an event then', async () => {
    const silenceMs = 60;
    let answer: () => void = () => undefined;
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const startMs = performance.now();
    const { url } = await listen((one) => answered.then(() => replyTo(one)), { silenceMs });
    const { response } = await openPlain(url);
    expect(response.headers['content-type']).toBe('text/event-stream');
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk;
      if (text.length >= 2 * ':\n\n'.length) answer();
    }
    const [comments = '', event] = text.split(/(?=event:)/);
    expect(comments).toMatch(/^(:\n\n){2,}$/);
    expect(comments.length / ':\n\n'.length).toBeLessThanOrEqual(
      (performance.now() - startMs) / silenceMs + 1,
    );
    expect(event).toContain('"resultType":"complete"');
  });

  test('is counted from the last thing that was sent', async () => {
    const { url } = await listen(
      async (one) => {
        for (let i = 0; i < 10; i++) {
          await sleep(80);
          one.notify(notice());
        }
        return replyTo(one);
      },
      { silenceMs: 600 },
    );
    expect((await call(url, 'tools/list')).raw.toString()).not.toMatch(/^:/m);
  });

  test('of less than that stays JSON', async () => {
    const { url } = await listen((one) => sleep(50).then(() => replyTo(one)), { silenceMs: 2_000 });
    expect((await call(url, 'tools/list')).headers['content-type']).toBe('application/json');
  });
});

/** A client that sends a request, and reads nothing by itself. */
async function openPlain(url: string, signal?: AbortSignal) {
  const sent = request(url, {
    method: 'POST',
    agent: false,
    headers: {
      'content-type': 'application/json',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/list',
    },
    ...(signal === undefined ? {} : { signal }),
  });
  sent.on('error', () => undefined);
  sent.end(requestText('tools/list', {}));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  return { sent, response };
}

describe('a client', () => {
  test('that goes away aborts its call, once', async () => {
    const causes: Error[] = [];
    const { url } = await listen((one) => {
      one.notify(notice());
      return new Promise((_, reject) => {
        one.signal.listen((cause) => {
          causes.push(cause);
          reject(cause);
        });
      });
    });
    const open = await openCall(url, 'tools/list');
    open.close();
    await expect.poll(() => causes.length).toBe(1);
    await sleep(20);
    expect(causes).toHaveLength(1);
    expect(causes[0]?.message).toBe('The client closed the connection');
  });

  test('that goes away before anything came back aborts its call, too', async () => {
    const causes: Error[] = [];
    const { url } = await listen(
      (one) => new Promise((_, reject) => one.signal.listen((cause) => reject(causes.push(cause)))),
    );
    const gone = new AbortController();
    const waiting = call(url, 'tools/list', {}, { signal: gone.signal });
    setTimeout(() => gone.abort(), 50);
    await expect(waiting).rejects.toThrow();
    await expect.poll(() => causes.length).toBe(1);
  });

  test('that got its reply aborts nothing when it goes', async () => {
    const causes: Error[] = [];
    const { url } = await listen((one) => {
      one.signal.listen((cause) => causes.push(cause));
      return Promise.resolve(replyTo(one));
    });
    await call(url, 'tools/list');
    await sleep(20);
    expect(causes).toEqual([]);
  });

  test('that reads too slowly is dropped, its call aborted, and that is counted', async () => {
    let isAborted = false;
    let sentBytes = 0;
    const listener = await listen(
      async (one) => {
        one.signal.listen(() => {
          isAborted = true;
        });
        const message = notice('x'.repeat(100_000));
        while (!isAborted && sentBytes < 200_000_000) {
          one.notify(message);
          sentBytes += message.length;
          await new Promise((resolve) => setImmediate(resolve));
        }
        throw one.signal.cause ?? new Error('never aborted');
      },
      { bufferBytesMax: 500_000 },
    );
    const { response } = await openPlain(listener.url);
    response.pause();
    await expect.poll(() => isAborted).toBe(true);
    expect(sentBytes).toBeLessThan(30_000_000);
    expect((await listener.metrics.exposition()).text).toMatch(/\{[^}]*"sseBuffer"[^}]*\} 1/);
  });
});

/** A rest that the test feeds, and that notes how it is treated. */
function restOf() {
  const state = { paused: false, resumes: 0, destroyed: 0 };
  let reader: ReplyReader | undefined;
  const rest: ReplyRest = {
    read: (given) => {
      reader = given;
    },
    resume: () => {
      state.resumes += 1;
      state.paused = false;
    },
    destroy: () => {
      state.destroyed += 1;
    },
  };
  return {
    rest,
    state,
    push(chunk: Buffer): boolean {
      const more = reader?.data(chunk) ?? true;
      if (!more) state.paused = true;
      return more;
    },
    end: () => reader?.end(),
    fail: () => reader?.fail(new Error('the upstream died')),
  };
}

const longReply = (one: Call, rest: ReplyRest): Reply => ({
  parts: [Buffer.from('{"jsonrpc":"2.0","id":'), idOf(one.request), Buffer.from(',"result":{"a":"')],
  rest,
  outcome: okOutcome,
  status: 200,
});

describe('a long reply', () => {
  test('passes as it comes, byte for byte, and ends cleanly', async () => {
    const fed = restOf();
    const { url } = await listen((one) => Promise.resolve(longReply(one, fed.rest)));
    const open = await openCall(url, 'tools/list');
    expect([open.status, open.headers['content-type'], open.headers['content-length']]).toEqual([
      200,
      'application/json',
      undefined,
    ]);
    for (const piece of ['x', 'é', '\\n', '"}}']) fed.push(Buffer.from(piece));
    fed.end();
    expect((await open.done).raw.toString()).toBe('{"jsonrpc":"2.0","id":1,"result":{"a":"xé\\n"}}');
    expect(fed.state.destroyed).toBe(0);
  });

  test('on a stream is one event, on one line', async () => {
    const fed = restOf();
    const { url } = await listen((one) => {
      one.notify(notice());
      return Promise.resolve(longReply(one, fed.rest));
    });
    const open = await openCall(url, 'tools/list');
    await open.next();
    for (const piece of ['x', '"\r\n', '}\n', '}']) fed.push(Buffer.from(piece));
    fed.end();
    const { response, raw } = await open.done;
    expect(response?.result).toEqual({ a: 'x' });
    expect(raw.toString().split('\n\n')).toHaveLength(3);
  });

  test.each([false, true])(
    'whose upstream dies breaks the connection, never ends it cleanly (after an event: %s)',
    async (isEvent) => {
      const fed = restOf();
      const { url } = await listen((one) => {
        if (isEvent) one.notify(notice());
        return Promise.resolve(longReply(one, fed.rest));
      });
      const open = await openCall(url, 'tools/list');
      fed.push(Buffer.from('xxx'));
      fed.fail();
      await expect(open.done).rejects.toThrow();
    },
  );

  test('is ended at its upstream when the client goes away', async () => {
    const fed = restOf();
    const { url } = await listen((one) => Promise.resolve(longReply(one, fed.rest)));
    const open = await openCall(url, 'tools/list');
    fed.push(Buffer.from('xxx'));
    open.close();
    await expect.poll(() => fed.state.destroyed).toBe(1);
  });

  test('that comes when the client is gone already is ended at its upstream', async () => {
    const fed = restOf();
    let answer: () => void = () => undefined;
    const { url } = await listen(
      (one) =>
        new Promise((resolve) => {
          answer = () => resolve(longReply(one, fed.rest));
        }),
    );
    const gone = new AbortController();
    const waiting = call(url, 'tools/list', {}, { signal: gone.signal });
    setTimeout(() => gone.abort(), 50);
    await expect(waiting).rejects.toThrow();
    await sleep(50);
    answer();
    await expect.poll(() => fed.state.destroyed).toBe(1);
  });

  test('waits for a client that reads slowly, and goes on when it reads', async () => {
    const fed = restOf();
    const { url } = await listen((one) => Promise.resolve(longReply(one, fed.rest)));
    const { response } = await openPlain(url);
    response.pause();
    const piece = Buffer.alloc(64 * 1024, 0x78);
    let pushed = 0;
    while (fed.push(piece)) {
      pushed += 1;
      expect(pushed).toBeLessThan(1_000);
      await sleep(1);
    }
    expect(fed.state).toEqual({ paused: true, resumes: 0, destroyed: 0 });
    response.resume();
    await expect.poll(() => fed.state.resumes).toBeGreaterThan(0);
    fed.push(Buffer.from('"}}'));
    fed.end();
    await once(response, 'end');
  });
});
