import { describe, expect, test } from 'vitest';
import { Call, type Reply, type ReplyRest } from '../../src/protocol/call.ts';
import { RpcError } from '../../src/protocol/errors.ts';
import { scanInbound } from '../../src/protocol/message.ts';
import { AskExchange, type Asked } from '../../src/upstream/ask-exchange.ts';
import { ChannelError, type IncomingRest } from '../../src/upstream/channel.ts';
import { CallExchange } from '../../src/upstream/exchange.ts';
import type { ExchangeContext } from '../../src/upstream/exchange-context.ts';

const id = 1_000_000_001;
const scan = { strict: false, depthMax: 64 };

function callOf(method = 'tools/call', capabilities: object = {}): Call {
  const _meta = { 'io.modelcontextprotocol/clientCapabilities': capabilities };
  const body = { jsonrpc: '2.0', id: 'abc', method, params: { name: 'x', _meta } };
  const inbound = scanInbound(Buffer.from(JSON.stringify(body)), { strict: true, depthMax: 64 });
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  return new Call(inbound.request, { name: 'nobody' }, new Map(), () => undefined);
}

function contextOf() {
  const messages: string[] = [];
  const over: (Error | undefined)[] = [];
  /** The types of the results that were looked at for questions. */
  const asked: unknown[] = [];
  const context: ExchangeContext = {
    upstream: 'up',
    scan,
    isModern: () => false,
    resultBytesMax: 200,
    message: (bytes) => messages.push(bytes.toString()),
    resume: () => undefined,
    asked: (message) => {
      const { resultType } = JSON.parse(message.bytes.toString()).result;
      if (resultType === 'input_required') asked.push(resultType);
      return undefined;
    },
    taskEdit: () => undefined,
    isSessionLost: () => false,
    over: (_, failure) => over.push(failure),
  };
  return { context, messages, over, asked };
}

function startCall(method?: string, capabilities?: object) {
  const call = callOf(method, capabilities);
  const { context, messages, over, asked } = contextOf();
  let exchange: CallExchange | undefined;
  const done = new Promise<Reply>((resolve, reject) => {
    exchange = new CallExchange(id, context, { call, resolve, reject });
  });
  done.catch(() => undefined);
  if (exchange === undefined) throw new Error('no exchange');
  return { call, exchange, done, messages, over, asked };
}

const answer = (result: string): Buffer => Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);

test('a short answer whose bytes are another’s afterwards is replied as it was', async () => {
  const { exchange, done, over } = startCall();
  const lent = answer('{"content":[{"type":"text","text":"é"}]}');
  expect(exchange.replyLent(lent)).toBe(true);
  lent.fill(0x2e);
  const reply = await done;
  expect(Buffer.concat(reply.parts).toString()).toBe(
    '{"jsonrpc":"2.0","id":"abc","result":{"resultType":"complete","content":[{"type":"text","text":"é"}]}}',
  );
  expect(over).toEqual([undefined]);
  expect(exchange.replyLent(lent)).toBe(false);
});

test('a short answer in memory that is used again has its parts, and gives the memory back', async () => {
  const { exchange, done } = startCall();
  const lent = answer('{"content":[],"resultType":"complete"}');
  let released = 0;
  exchange.reply(lent, undefined, { kind: 'text', release: () => released++ });
  expect(released).toBe(1);
  lent.fill(0x2e);
  const reply = await done;
  expect(reply.release).toBeUndefined();
  expect(Buffer.concat(reply.parts).toString()).toBe(
    '{"jsonrpc":"2.0","id":"abc","result":{"content":[],"resultType":"complete"}}',
  );
});

test.each([
  ['has an error of its tool', answer('{"content":[],"isError":true}')],
  ['is an error', Buffer.from(`{"jsonrpc":"2.0","id":${id},"error":{"code":-1,"message":"x"}}`)],
  ['is too long for text', answer(`{"content":"${'x'.repeat(20_000)}"}`)],
])('an answer that %s is not taken where its bytes are another’s afterwards', (_, lent) => {
  const { exchange, over } = startCall();
  expect(exchange.replyLent(lent)).toBe(false);
  expect(over).toEqual([]);
});

test('an answer that comes while nobody waits is not taken where its bytes are another’s afterwards', () => {
  const { exchange, call } = startCall();
  exchange.park({ parts: [], outcome: { kind: 'asks' }, status: 200 });
  expect(exchange.replyLent(answer('{"content":[]}'))).toBe(false);
  expect(call.signal.cause).toBeUndefined();
});

function startAsk() {
  const { context, messages, over } = contextOf();
  let exchange: AskExchange | undefined;
  const done = new Promise<Asked>((resolve, reject) => {
    exchange = new AskExchange(id, context, resolve, reject);
  });
  done.catch(() => undefined);
  if (exchange === undefined) throw new Error('no exchange');
  return { exchange, done, messages, over };
}

/** A rest that the test feeds by hand. */
function restOf() {
  let reader: Parameters<IncomingRest['read']>[0] | undefined;
  const state = { destroyed: 0, resumed: 0 };
  const rest: IncomingRest = {
    read: (given) => {
      reader = given;
    },
    resume: () => {
      state.resumed += 1;
    },
    destroy: () => {
      state.destroyed += 1;
    },
  };
  const fed = () => {
    if (reader === undefined) throw new Error('nobody reads');
    return reader;
  };
  return {
    rest,
    state,
    data: (text: string) => fed().data(Buffer.from(text)),
    end: () => fed().end(),
    fail: (cause: Error) => fed().fail(cause),
  };
}

/** Reads the rest of a reply and tells what came of it. */
function readRest(rest: ReplyRest, takes: (bytes: number) => boolean = () => true) {
  const got = { text: '', ended: 0, failed: [] as Error[] };
  rest.read({
    data: (chunk) => {
      got.text += chunk.toString();
      return takes(chunk.length);
    },
    end: () => {
      got.ended += 1;
    },
    fail: (cause) => got.failed.push(cause),
  });
  return got;
}

const textOf = (reply: Reply): string => Buffer.concat([...reply.parts]).toString();
const bytes = (text: string): Buffer => Buffer.from(text);

describe('a call', () => {
  test('is over with its reply: what comes later goes nowhere', async () => {
    const { exchange, done, messages, over } = startCall();
    exchange.message(bytes('{"method":"notifications/x"}'));
    exchange.reply(bytes(`{"id":${id},"result":{"resultType":"complete"}}`));
    exchange.message(bytes('{"method":"notifications/y"}'));
    exchange.reply(bytes(`{"id":${id},"result":{"second":1}}`));
    exchange.fail(new ChannelError('lost', 'gone', { sent: true }));
    expect(textOf(await done)).toBe('{"id":"abc","result":{"resultType":"complete"}}');
    expect(messages).toEqual(['{"method":"notifications/x"}']);
    expect(over).toEqual([undefined]);
  });

  test('no longer listens for its abort when it is over', async () => {
    const { call, exchange, done } = startCall();
    let aborted = 0;
    call.signal.listen(() => aborted++);
    exchange.reply(bytes(`{"id":${id},"result":{}}`));
    await done;
    call.signal.abort(new Error('late'));
    expect(aborted).toBe(0);
  });

  test.each([
    ['unreachable', false, 5030, 'nothing was sent'],
    ['closed', false, 5030, 'nothing was sent'],
    ['closed', true, 5021, 'may or may not have run'],
    ['lost', false, 5030, 'nothing was sent'],
    ['lost', true, 5021, 'may or may not have run'],
    ['broken', true, 5020, 'no usable answer'],
    ['status', true, 5020, 'no usable answer'],
    ['too-big', true, 5020, 'no usable answer'],
  ] as const)(
    'whose transport failed (%s, sent: %s) says which server it was, and what that means',
    async (reason, sent, code, words) => {
      const { exchange, done, over } = startCall();
      const failure = new ChannelError(reason, 'the reason', { sent });
      exchange.fail(failure);
      const error = await done.catch((cause: unknown) => cause);
      expect(error).toMatchObject({ code, status: 200, cause: failure });
      for (const part of ['server `up`', 'the reason', words])
        expect((error as Error).message).toContain(part);
      expect(over).toEqual([failure]);
    },
  );

  test('that was refused by the gateway itself is refused in those words', async () => {
    const { exchange, done } = startCall();
    const refusal = new RpcError(4290, 'too many');
    exchange.fail(refusal);
    await expect(done).rejects.toBe(refusal);
  });

  const withStatus = (status: number, body: string): ChannelError =>
    new ChannelError('status', `it answered ${status}`, { sent: true, http: { status, body: bytes(body) } });

  test.each([
    [400, -32602, -32602, 200],
    [400, -32021, -32021, 400],
    [404, -32601, -32601, 200],
    [404, -32002, -32602, 200],
    [500, -32603, -32603, 200],
  ])(
    'refused with HTTP %i and error %i in the body is refused with error %i and HTTP %i',
    async (status, said, code, passed) => {
      const { exchange, done, over } = startCall();
      exchange.fail(
        withStatus(status, `{"jsonrpc":"2.0","id":${id},"error":{"code":${said},"message":"no"}}`),
      );
      const reply = await done;
      expect(JSON.parse(textOf(reply))).toMatchObject({ id: 'abc', error: { code, message: 'no' } });
      expect([reply.status, over]).toEqual([passed, [undefined]]);
    },
  );

  test.each([
    '',
    'Bad Gateway',
    '{"error":"unauthorized"}',
    `{"id":${id},"result":{}}`,
    '{"jsonrpc":"2.0","id":',
  ])('refused with HTTP 502 and %j in the body has no usable answer', async (body) => {
    const { exchange, done } = startCall();
    exchange.fail(withStatus(502, body));
    await expect(done).rejects.toMatchObject({ code: 5020, message: expect.stringContaining('502') });
  });
});

describe('what a server asks for in its result is looked at, however it is written', () => {
  const asks = '"inputRequests":{"q":{"method":"roots/list"}},"requestState":"s"';
  const envelopes: readonly ((result: string) => string)[] = [
    (result) => `{"jsonrpc":"2.0","id":${id},"result":{${result}}}`,
    (result) => `{"result":{${result}},"jsonrpc":"2.0","id":${id}}`,
    (result) => `{ "jsonrpc": "2.0", "id": ${id}, "result": { ${result} } }`,
  ];
  test.each([
    `"resultType":"input_required",${asks}`,
    `${asks},"resultType":"input_required"`,
    `${asks},"result\\u0054ype":"input_required"`,
    `"\\u0072esultType":"input_required",${asks}`,
    `"resultType" : "input_required",${asks}`,
    `"resultType":"complete",${asks},"resultType":"input_required"`,
    `"resultType":"complete",${asks},"result\\u0054ype":"input_required"`,
    `"resultType":"complete","result\\u0054ype":"input_required",${asks}`,
  ])('%s', async (result) => {
    for (const envelope of envelopes) {
      const { exchange, done, asked } = startCall();
      exchange.reply(bytes(envelope(result)));
      const seen = await done.then(
        (reply) => JSON.parse(textOf(reply)).result.resultType,
        (error: RpcError) => error.code,
      );
      // Either the question was looked at, or the answer is refused: the client must not see a question that the gateway did not.
      expect(asked.length === 1 || seen === 5020).toBe(true);
    }
  });
});

describe('a call that first needs the user to visit a URL', () => {
  const elicitations = [
    { mode: 'url', elicitationId: 'e1', url: 'https://example.com/login', message: 'Log in' },
  ];
  const said = JSON.stringify({ id, error: { code: -32042, message: 'first', data: { elicitations } } });

  test('asks a caller who can show one, without the id that older revisions had', async () => {
    const { exchange, done } = startCall('tools/call', { elicitation: { url: {} } });
    exchange.reply(bytes(said));
    expect(JSON.parse(textOf(await done))).toEqual({
      jsonrpc: '2.0',
      id: 'abc',
      result: {
        resultType: 'input_required',
        inputRequests: {
          url1: {
            method: 'elicitation/create',
            params: { mode: 'url', url: 'https://example.com/login', message: 'Log in' },
          },
        },
      },
    });
  });

  test.each([{}, { elicitation: {} }, { elicitation: { form: {} } }])(
    'tells a caller who can not what it lacks: %j',
    async (capabilities) => {
      const { exchange, done } = startCall('tools/call', capabilities);
      exchange.reply(bytes(said));
      await expect(done).rejects.toMatchObject({
        code: -32021,
        status: 400,
        data: { requiredCapabilities: { elicitation: { url: {} } } },
      });
    },
  );
});

describe('what was said to another request', () => {
  const other = id + 79_872;
  const url = '{"mode":"url","elicitationId":"e1","url":"https://example.com/secret","message":"secret"}';
  const refused = '"error":{"code":-32020,"message":"secret"}';

  test.each([
    [
      'a URL that its user must visit',
      `"error":{"code":-32042,"message":"secret","data":{"elicitations":[${url}]}}`,
    ],
    ['a refusal of its headers', refused],
    ['an error', '"error":{"code":-5,"message":"secret"}'],
    ['a question', '"result":{"resultType":"input_required","requestState":"secret"}'],
  ])('is told to nobody: %s', async (_, said) => {
    const { exchange, done, asked } = startCall('tools/call', { elicitation: { url: {} } });
    expect(exchange.reply(bytes(`{"jsonrpc":"2.0","id":${other},${said}}`))).toBe(false);
    await expect(done).rejects.toMatchObject({ code: 5020, message: expect.stringContaining('another id') });
    expect(asked).toEqual([]);
  });

  test.each([undefined, 1_000])('is told to nobody in an error status with patience of %s ms', async (ms) => {
    const { exchange, done } = startCall();
    const body = bytes(`{"id":${other},"error":{"code":-5,"message":"secret","data":{}}}`);
    const http = { status: 429, body, ...(ms === undefined ? {} : { retryAfterMs: ms }) };
    exchange.fail(new ChannelError('status', 'it answered 429', { sent: true, http }));
    await expect(done).rejects.toMatchObject({ code: 5020, message: expect.stringContaining('another id') });
  });

  test.each([
    [
      'needs what its caller can not',
      `"error":{"code":-32042,"message":"visit","data":{"elicitations":[${url}]}}`,
    ],
    ['refuses its headers', refused],
  ])('is no suspicion where the answer %s', async (_, said) => {
    const { exchange, done } = startCall();
    expect(exchange.reply(bytes(`{"jsonrpc":"2.0","id":${id},${said}}`))).toBe(true);
    await expect(done).rejects.toBeInstanceOf(RpcError);
  });
});

describe('a long answer to a call', () => {
  const start = async (head: string, method?: string) => {
    const started = startCall(method);
    const fed = restOf();
    started.exchange.reply(bytes(head), fed.rest);
    const reply = await started.done;
    return { ...started, ...fed, reply };
  };

  test('passes with the id of the caller and what its result lacks, as it comes', async () => {
    const { reply, data, end, state } = await start(`{"jsonrpc":"2.0","id":${id},"result":{"a":"`);
    const begun = '{"jsonrpc":"2.0","id":"abc","result":{"resultType":"complete","a":"';
    expect(textOf(reply)).toBe(begun);
    if (reply.rest === undefined) throw new Error('no rest');
    const got = readRest(reply.rest);
    data('xxx');
    expect(got.text).toBe('xxx');
    data('"}}');
    end();
    expect([got.text, got.ended, got.failed]).toEqual(['xxx"}}', 1, []]);
    expect(state.destroyed).toBe(0);
  });

  test('of a read gets its hints too', async () => {
    const { reply, data, end } = await start(`{"id":${id},"result":{"contents":[`, 'resources/read');
    if (reply.rest === undefined) throw new Error('no rest');
    const got = readRest(reply.rest);
    data(']}}');
    end();
    expect(JSON.parse(textOf(reply) + got.text).result).toEqual({
      contents: [],
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
    });
  });

  test('is paused while its reader is, and resumed and ended with it', async () => {
    const { reply, data, state } = await start(`{"id":${id},"result":{"a":"`);
    if (reply.rest === undefined) throw new Error('no rest');
    readRest(reply.rest, () => false);
    expect(data('xxx')).toBe(false);
    reply.rest.resume();
    reply.rest.destroy();
    expect(state).toEqual({ destroyed: 1, resumed: 1 });
  });

  test.each([
    ['carries another id at its end', `{"result":{"a":"`, `"},"id":1000000009}`],
    ['ends in the middle', `{"id":${id},"result":{"a":"`, 'x'],
    ['carries no id at all', `{"result":{"a":"`, '"}}'],
    ['goes on after its end', `{"id":${id},"result":{"a":"`, '"}}{}'],
  ])('that %s fails, and never ends', async (_, head, tail) => {
    const { reply, data, end } = await start(head);
    if (reply.rest === undefined) throw new Error('no rest');
    const got = readRest(reply.rest);
    data(tail);
    if (got.failed.length === 0) end();
    expect([got.ended, got.failed.length]).toEqual([0, 1]);
  });

  test('whose upstream dies fails', async () => {
    const { reply, fail } = await start(`{"id":${id},"result":{"a":"`);
    if (reply.rest === undefined) throw new Error('no rest');
    const got = readRest(reply.rest);
    const cause = new ChannelError('lost', 'gone', { sent: true });
    fail(cause);
    expect([got.ended, got.failed]).toEqual([0, [cause]]);
  });

  test.each([
    ['another id', '{"id":1000000002,"result":{"a":"'],
    ['a text as id', `{"id":"other","result":{"a":"`],
    ['an error, which is never so long', `{"id":${id},"error":{"code":-1,"message":"`],
    ['no object', '["'],
  ])('that begins with %s is no answer, and is ended at once', async (_, head) => {
    const { exchange, done, over } = startCall();
    const { rest, state } = restOf();
    exchange.reply(bytes(head), rest);
    await expect(done).rejects.toMatchObject({ code: 5020, message: expect.stringContaining('server `up`') });
    expect([state.destroyed, over.length]).toEqual([1, 1]);
  });

  test('to a call that is over is ended at once', () => {
    const { exchange } = startCall();
    exchange.fail(new RpcError(5040, 'too late'));
    const { rest, state } = restOf();
    exchange.reply(bytes(`{"id":${id},"result":{"a":"`), rest);
    expect(state.destroyed).toBe(1);
  });
});

describe("a request of the gateway's own", () => {
  test('is answered with the result', async () => {
    const { exchange, done, over } = startAsk();
    exchange.reply(bytes(`{"id":${id},"result":{"a":1}}`));
    const { result, bytes: whole } = await done;
    expect(whole.toString('utf8', result.start, result.end)).toBe('{"a":1}');
    expect(over).toEqual([undefined]);
  });

  test('is refused in the words of the server', async () => {
    const { exchange, done } = startAsk();
    exchange.reply(bytes(`{"id":${id},"error":{"code":-32601,"message":"no","data":{"x":1}}}`));
    await expect(done).rejects.toMatchObject({ code: -32601, message: 'no', data: { x: 1 } });
  });

  test('that was refused with an HTTP status keeps it as the cause', async () => {
    const { exchange, done } = startAsk();
    const http = { status: 401, body: bytes('{"error":{"code":-32001,"message":"who?"}}') };
    exchange.fail(new ChannelError('status', 'it answered 401', { sent: true, http }));
    await expect(done).rejects.toMatchObject({ code: -32001, cause: { http: { status: 401 } } });
  });

  test.each(['{"method":"notifications/x"}', '{"id":7,"method":"ping"}', '{"id":1}', 'no'])(
    'that is answered with %j has no usable answer',
    async (text) => {
      const { exchange, done } = startAsk();
      exchange.reply(bytes(text));
      await expect(done).rejects.toMatchObject({ code: 5020 });
    },
  );

  test.each([
    ['a result', '"result":{"tools":[]}'],
    ['an error', '"error":{"code":-1,"message":"no"}'],
  ])('is not answered with %s of another request', async (_, said) => {
    const { exchange, done } = startAsk();
    expect(exchange.reply(bytes(`{"id":1000079873,${said}}`))).toBe(false);
    await expect(done).rejects.toMatchObject({ code: 5020 });
  });

  test('is gathered where the answer is long', async () => {
    const { exchange, done } = startAsk();
    const { rest, data, end } = restOf();
    exchange.reply(bytes(`{"id":${id},"result":{"a":"`), rest);
    expect(data('x'.repeat(100))).toBe(true);
    data('"}}');
    end();
    expect((await done).bytes.toString()).toBe(`{"id":${id},"result":{"a":"${'x'.repeat(100)}"}}`);
  });

  test('fails where the answer is longer than what may be held, and reads no further', async () => {
    const { exchange, done, over } = startAsk();
    const { rest, data, state } = restOf();
    exchange.reply(bytes(`{"id":${id},"result":{"a":"`), rest);
    expect(data('x'.repeat(300))).toBe(false);
    await expect(done).rejects.toMatchObject({
      code: 5020,
      message: expect.stringContaining('limits.result'),
    });
    expect([state.destroyed, over.length]).toEqual([1, 1]);
  });

  test('fails where the server dies inside a long answer', async () => {
    const { exchange, done } = startAsk();
    const { rest, fail } = restOf();
    exchange.reply(bytes(`{"id":${id},"result":{"a":"`), rest);
    fail(new ChannelError('lost', 'gone', { sent: true }));
    await expect(done).rejects.toMatchObject({ code: 5021 });
  });
});
