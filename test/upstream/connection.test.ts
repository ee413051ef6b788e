import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createSeal } from '../../src/auth/seal.ts';
import { Call, type Reply } from '../../src/protocol/call.ts';
import { RpcError } from '../../src/protocol/errors.ts';
import { paramOf, scanInbound } from '../../src/protocol/message.ts';
import { type Channel, ChannelError, type Exchange, type Outgoing } from '../../src/upstream/channel.ts';
import { Connection } from '../../src/upstream/connection.ts';
import { legacyDialect, modernDialect } from '../../src/upstream/dialect.ts';
import { Parks } from '../../src/upstream/parks.ts';
import { SealedTaskIds } from '../../src/upstream/task-ids.ts';

const scan = { strict: false, depthMax: 64 };
const identity = { name: 'gateway', version: '1.0.0' };
const dialects = {
  modern: modernDialect(identity),
  legacy: legacyDialect('2025-11-25', scan),
  oldest: legacyDialect('2025-03-26', scan),
};

/** A channel that only notes what it is told: what comes back is up to the test. */
function connect(era: keyof typeof dialects, transport: Channel['transport'] = 'stdio') {
  const sent: (Outgoing & { readonly exchange: Exchange })[] = [];
  const posted: { readonly body: string; readonly headers: readonly string[] }[] = [];
  const cancelled: number[] = [];
  const told: string[] = [];
  const streams: Parameters<NonNullable<Channel['openStream']>>[1][] = [];
  const channel: Channel = {
    transport,
    send: (outgoing, exchange) => sent.push({ ...outgoing, exchange }),
    post: (body, headers) => {
      posted.push({ body: body.toString(), headers });
      return Promise.resolve();
    },
    openStream: (_, events) => {
      streams.push(events);
      return () => undefined;
    },
    cancel: (id) => cancelled.push(id),
    close: () => Promise.resolve(),
  };
  const connection = new Connection(channel, dialects[era], {
    upstream: 'up',
    scan,
    resultBytesMax: 1_000_000,
    roots: [],
    state: { upstream: 'up', seal: createSeal(Buffer.alloc(32), 'state', randomBytes), now: Date.now },
    taskIds: new SealedTaskIds(createSeal(Buffer.alloc(32), 'task', randomBytes)),
    parks: new Parks({
      upstream: 'up',
      seal: createSeal(Buffer.alloc(32), 'park', randomBytes),
      replica: 'here',
      random: () => String(Math.random()),
      now: Date.now,
    }),
    events: {
      refused: (method, why) => told.push(`refused ${method}: ${why}`),
      recover: () => Promise.resolve(),
      listChanged: (kinds) => told.push(`changed ${kinds.join(' ')}`),
      resourceUpdated: (uri) => told.push(`updated ${uri}`),
      taskChanged: ({ taskId }) => told.push(`task ${taskId}`),
      logged: (level) => told.push(`logged ${level}`),
      failed: (error) => told.push(`failed ${error.message}`),
      passed: () => undefined,
      dropped: (kind) => told.push(`dropped ${kind}`),
    },
  });
  const last = () => {
    const one = sent.at(-1);
    if (one === undefined) throw new Error('nothing was sent');
    return one;
  };
  return { connection, sent, posted, cancelled, told, streams, last };
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** `token` is a progress token as it is to stand in the body. */
function callOf({
  more = {},
  token = '',
  indent = 0,
  retry = {},
}: {
  more?: object;
  retry?: object;
  token?: string;
  indent?: number;
} = {}) {
  const progress = token === '' ? {} : { progressToken: 'as written' };
  const params = { name: 'up__x', arguments: {}, ...retry, _meta: { ...meta, ...more, ...progress } };
  const body = JSON.stringify(
    { jsonrpc: '2.0', id: 'abc', method: 'tools/call', params },
    null,
    indent,
  ).replace('"as written"', () => token);
  const inbound = scanInbound(Buffer.from(body), { strict: true, depthMax: 64 });
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  const notified: string[] = [];
  const call = new Call(inbound.request, { name: 'nobody' }, new Map(), (message) =>
    notified.push(message.toString()),
  );
  const target = { member: paramOf(inbound.request, 'name'), name: 'x', paramHeaders: [] };
  return { call, target, notified };
}

const quiet = (done: Promise<unknown>): void => void done.catch(() => undefined);
/** Until what has to happen first has happened, such as the level of a session. */
const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const answerTo = ({ id }: Outgoing): Buffer => Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
const textOf = (reply: Reply): string => Buffer.concat([...reply.parts]).toString();

describe('a call', () => {
  test('is sent under an id of its own, of one length, and answered to its caller', async () => {
    const { connection, sent } = connect('modern');
    const replies = [callOf(), callOf()].map(({ call, target }) => connection.send(call, target));
    expect(sent.map(({ id }) => String(id).length)).toEqual([10, 10]);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(2);
    expect(connection.callsInFlight).toBe(2);
    for (const one of sent.toReversed()) one.exchange.reply(answerTo(one));
    for (const reply of await Promise.all(replies))
      expect(textOf(reply)).toBe('{"jsonrpc":"2.0","id":"abc","result":{"resultType":"complete"}}');
    expect(connection.callsInFlight).toBe(0);
  });

  test('carries the headers of its era', async () => {
    const headersOf = async (era: keyof typeof dialects, name: string): Promise<readonly string[]> => {
      const { connection, last } = connect(era, 'streamable-http');
      const { call, target } = callOf();
      quiet(connection.send(call, { ...target, name, paramHeaders: ['Mcp-Param-A', 'b'] }));
      await soon();
      return last().headers;
    };
    expect(await headersOf('modern', 'x')).toEqual([
      ...['MCP-Protocol-Version', '2026-07-28', 'Mcp-Method', 'tools/call'],
      ...['Mcp-Name', 'x', 'Mcp-Param-A', 'b'],
    ]);
    expect((await headersOf('modern', 'ä')).slice(4, 6)).toEqual(['Mcp-Name', '=?base64?w6Q=?=']);
    expect(await headersOf('legacy', 'x')).toEqual(['MCP-Protocol-Version', '2025-11-25']);
    expect(await headersOf('oldest', 'x')).toEqual([]);
  });

  test('in many lines goes to a child on one, and over HTTP as it was printed', async () => {
    for (const transport of ['stdio', 'streamable-http'] as const) {
      for (const era of ['modern', 'legacy'] as const) {
        const { connection, last } = connect(era, transport);
        const { call, target } = callOf({ indent: 2 });
        quiet(connection.send(call, target));
        await soon();
        const body = last().body.toString();
        expect(/[\r\n]/.test(body)).toBe(transport === 'streamable-http');
        expect(JSON.parse(body)).toMatchObject({ id: last().id, params: { name: 'x' } });
      }
    }
  });

  test.each([
    ['modern', 'stdio', 1],
    ['modern', 'streamable-http', 0],
    ['legacy', 'stdio', 1],
    ['legacy', 'streamable-http', 1],
  ] as const)(
    'that is aborted is cancelled in the way of a %s server over %s',
    async (era, transport, notices) => {
      const { connection, posted, cancelled, last } = connect(era, transport);
      const { call, target } = callOf();
      const done = connection.send(call, target);
      await soon();
      const cause = new RpcError(5040, 'too late');
      call.signal.abort(cause);
      await expect(done).rejects.toBe(cause);
      expect(cancelled).toEqual([last().id]);
      expect(posted.map(({ body }) => JSON.parse(body))).toEqual(
        Array.from({ length: notices }, () => ({
          jsonrpc: '2.0',
          method: 'notifications/cancelled',
          params: { requestId: last().id },
        })),
      );
      expect(connection.callsInFlight).toBe(0);
    },
  );

  test('that was aborted before it could be sent is not sent, and so not cancelled either', async () => {
    const { connection, sent, posted, cancelled } = connect('modern');
    const { call, target } = callOf();
    const cause = new RpcError(5021, 'gone');
    call.signal.abort(cause);
    await expect(connection.send(call, target)).rejects.toBe(cause);
    expect([sent, posted, cancelled]).toEqual([[], [], []]);
    expect(connection.callsInFlight).toBe(0);
  });

  test('that was aborted while the level of its session was set is not sent either', async () => {
    const { connection, sent, posted, last } = connect('legacy');
    const { call, target } = callOf({ more: { 'io.modelcontextprotocol/logLevel': 'info' } });
    const done = connection.send(call, target);
    await soon();
    const cause = new RpcError(5021, 'gone');
    call.signal.abort(cause);
    last().exchange.reply(answerTo(last()));
    await expect(done).rejects.toBe(cause);
    expect([sent.map(({ method }) => method), posted]).toEqual([['logging/setLevel'], []]);
  });

  test('that was answered is not cancelled by what comes later', async () => {
    const { connection, posted, cancelled, last } = connect('modern');
    const { call, target } = callOf();
    const done = connection.send(call, target);
    last().exchange.reply(answerTo(last()));
    await done;
    call.signal.abort(new RpcError(5021, 'gone'));
    expect([posted, cancelled]).toEqual([[], []]);
  });

  test('whose transport fails is told as a failure of the server', async () => {
    const { connection, told, last } = connect('modern');
    const { call, target } = callOf();
    const done = connection.send(call, target);
    last().exchange.fail(new ChannelError('lost', 'gone', { sent: true }));
    await expect(done).rejects.toMatchObject({ code: 5021 });
    expect(told).toEqual(['failed gone']);
  });
});

describe('progress', () => {
  const progress = (token: unknown, more = ''): Buffer =>
    Buffer.from(
      `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${JSON.stringify(token)},"progress":1.0${more}}}`,
    );

  test.each([['"tok"'], ['7'], ['"\\u0074"']])(
    'carries the token of the caller as it was written: %s',
    async (token) => {
      const { connection, last } = connect('legacy');
      const { call, target, notified } = callOf({ token });
      quiet(connection.send(call, target));
      await soon();
      connection.receive(progress(last().id, ',"x":"é"'), undefined);
      expect(notified).toEqual([
        `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":1.0,"x":"é"}}`,
      ]);
    },
  );

  test('reaches its call also where the server wrote the token as a text', () => {
    const { connection, last } = connect('modern');
    const { call, target, notified } = callOf({ token: '7' });
    quiet(connection.send(call, target));
    connection.receive(progress(String(last().id)), undefined);
    expect(notified).toHaveLength(1);
    expect(JSON.parse(notified[0] ?? '')).toMatchObject({ params: { progressToken: 7 } });
  });

  test('reaches the call that its token names, and no other', () => {
    const { connection, sent } = connect('modern');
    const calls = [callOf({ more: { progressToken: 1 } }), callOf({ more: { progressToken: 1 } })];
    for (const { call, target } of calls) quiet(connection.send(call, target));
    connection.receive(progress(sent[1]?.id), undefined);
    expect(calls.map(({ notified }) => notified.length)).toEqual([0, 1]);
  });

  test('for a caller who asked for none, for a call that is over, or with a strange token goes nowhere', async () => {
    const { connection, told, last } = connect('modern');
    const silent = callOf();
    const done = connection.send(silent.call, silent.target);
    connection.receive(progress(last().id), undefined);
    last().exchange.reply(answerTo(last()));
    await done;
    for (const token of [last().id, 'text', 1, null, { a: 1 }])
      connection.receive(progress(token), undefined);
    expect(silent.notified).toEqual([]);
    expect(told).toEqual(Array.from({ length: 6 }, () => 'dropped notifications/progress'));
  });
});

describe('log lines', () => {
  const line = (level: string): Buffer =>
    Buffer.from(
      `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"${level}","data":1.0}}`,
    );
  const wants = (level: string) => callOf({ more: { 'io.modelcontextprotocol/logLevel': level } });

  test('reach the caller who asked for them, from the level on that it asked for', () => {
    const { connection } = connect('modern');
    const { call, target, notified } = wants('warning');
    quiet(connection.send(call, target));
    for (const level of ['debug', 'notice', 'warning', 'emergency', 'unheard-of'])
      connection.receive(line(level), undefined);
    expect(notified).toEqual([line('warning').toString(), line('emergency').toString()]);
  });

  test('reach no caller who did not ask', () => {
    const { connection, told } = connect('modern');
    const { call, target, notified } = callOf();
    quiet(connection.send(call, target));
    connection.receive(line('emergency'), undefined);
    expect([notified, told]).toEqual([[], ['dropped notifications/message']]);
  });

  test('that came outside any stream while two calls are open reach neither', () => {
    const { connection } = connect('modern');
    const calls = [wants('debug'), wants('debug')];
    for (const { call, target } of calls) quiet(connection.send(call, target));
    connection.receive(line('error'), undefined);
    expect(calls.map(({ notified }) => notified)).toEqual([[], []]);
  });

  test('that came on the stream of a call reach that call, however many are open', () => {
    const { connection, sent } = connect('modern', 'streamable-http');
    const calls = [wants('debug'), wants('debug')];
    for (const { call, target } of calls) quiet(connection.send(call, target));
    sent[0]?.exchange.message(line('error'));
    expect(calls.map(({ notified }) => notified.length)).toEqual([1, 0]);
  });
});

describe('what a server asks', () => {
  test.each(['7', '"q\\u0031"'])(
    'is answered under its own id %s: a ping with a result, the rest with an error',
    (id) => {
      const { connection, posted } = connect('legacy');
      connection.receive(Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`), undefined);
      connection.receive(Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"no/such"}`), undefined);
      expect(posted[0]?.body).toBe(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
      expect(posted[1]?.body).toMatch(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,`);
    },
  );
});

test('a stray response and what is no message at all are counted, and go nowhere', () => {
  const { connection, told } = connect('modern');
  for (const text of ['{"id":1,"result":{}}', '{"id":1,"error":{"code":-1,"message":""}}', 'hello'])
    connection.receive(Buffer.from(text), undefined);
  expect(told).toEqual(['dropped result', 'dropped error', 'dropped noise']);
});

describe('changed lists', () => {
  test.each([
    ['tools', 'changed tools'],
    ['prompts', 'changed prompts'],
    ['resources', 'changed resources templates'],
  ])('of %s are told', (kind, expected) => {
    const { connection, told } = connect('legacy');
    connection.receive(
      Buffer.from(`{"jsonrpc":"2.0","method":"notifications/${kind}/list_changed"}`),
      undefined,
    );
    expect(told).toEqual([expected]);
  });

  test('of kinds that only look like one are counted as dropped', () => {
    const { connection, told } = connect('legacy');
    for (const method of ['notifications/roots/list_changed', '__proto__', 'constructor'])
      connection.receive(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method })), undefined);
    expect(told).toEqual([
      'dropped notifications/roots/list_changed',
      'dropped __proto__',
      'dropped constructor',
    ]);
  });
});

describe("the gateway's own requests", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('carry what their era wants', () => {
    const modern = connect('modern');
    quiet(modern.connection.ask('tools/list', { cursor: 'c' }, 1000));
    expect(JSON.parse(modern.last().body.toString())).toEqual({
      jsonrpc: '2.0',
      id: modern.last().id,
      method: 'tools/list',
      params: {
        cursor: 'c',
        _meta: {
          ...meta,
          'io.modelcontextprotocol/clientInfo': identity,
          'io.modelcontextprotocol/clientCapabilities': expect.any(Object),
        },
      },
    });
    const legacy = connect('legacy');
    quiet(legacy.connection.ask('tools/list', { cursor: 'c' }, 1000));
    expect(JSON.parse(legacy.last().body.toString()).params).toEqual({ cursor: 'c' });
    quiet(legacy.connection.ask('tools/list', {}, 1));
    quiet(modern.connection.ask('tools/list', {}, 1));
    vi.advanceTimersByTime(1000);
  });

  test('are cancelled when their time is over, and the error says whose and which', async () => {
    const { connection, posted, cancelled, last } = connect('modern');
    const done = connection.ask('tools/list', {}, 500);
    quiet(done);
    vi.advanceTimersByTime(500);
    await expect(done).rejects.toMatchObject({
      code: 5040,
      message: 'server `up` did not answer tools/list within 500 ms',
    });
    expect(cancelled).toEqual([last().id]);
    expect(posted).toHaveLength(1);
  });

  test('leave no timer behind when they are answered', async () => {
    const { connection, last } = connect('modern');
    const done = connection.ask('tools/list', {}, 500);
    last().exchange.reply(answerTo(last()));
    await done;
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a watched modern server', () => {
  const events = () => {
    const told: string[] = [];
    return {
      told,
      events: {
        open: () => told.push('open'),
        ended: () => told.push('ended'),
        random: () => 0,
        now: () => 0,
      },
    };
  };
  const about = (method: string, id: number): Buffer =>
    Buffer.from(
      JSON.stringify({
        jsonrpc: '2.0',
        method,
        params: { _meta: { 'io.modelcontextprotocol/subscriptionId': id }, requestId: id, notifications: {} },
      }),
    );

  test('is sent a listen, and is open when it acknowledged that one', () => {
    const { connection, last } = connect('modern');
    const { told, events: on } = events();
    const stop = connection.watch(['tools', 'resources'], on);
    const body = JSON.parse(last().body.toString());
    expect([body.method, body.params.notifications]).toEqual([
      'subscriptions/listen',
      { toolsListChanged: true, resourcesListChanged: true },
    ]);
    connection.receive(about('notifications/subscriptions/acknowledged', last().id + 1), undefined);
    expect(told).toEqual([]);
    connection.receive(about('notifications/subscriptions/acknowledged', last().id), undefined);
    expect(told).toEqual(['open']);
    stop();
  });

  test.each([
    ['with a result', (one: ReturnType<typeof connect>) => one.last().exchange.reply(answerTo(one.last()))],
    [
      'with a cancellation',
      (one: ReturnType<typeof connect>) =>
        one.connection.receive(about('notifications/cancelled', one.last().id), undefined),
    ],
    [
      'by a lost connection',
      (one: ReturnType<typeof connect>) =>
        one.last().exchange.fail(new ChannelError('lost', 'gone', { sent: true })),
    ],
  ])('that ends the stream %s is listened to again', async (_, end) => {
    vi.useFakeTimers();
    try {
      const one = connect('modern');
      const { told, events: on } = events();
      const stop = one.connection.watch(['tools'], on);
      end(one);
      await vi.advanceTimersByTimeAsync(600);
      expect([told, one.sent.length]).toEqual([['ended'], 2]);
      stop();
    } finally {
      vi.useRealTimers();
    }
  });

  test('that has no listen is left alone', async () => {
    vi.useFakeTimers();
    try {
      const { connection, sent, last } = connect('modern');
      connection.watch(['tools'], events().events);
      const text = `{"id":${last().id},"error":{"code":-32601,"message":"no"}}`;
      last().exchange.reply(Buffer.from(text));
      await vi.advanceTimersByTimeAsync(600_000);
      expect(sent).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test('hears that nobody listens any more', () => {
    const { connection, cancelled, posted, last } = connect('modern');
    connection.watch(['tools'], events().events)();
    expect(cancelled).toEqual([last().id]);
    expect(JSON.parse(posted[0]?.body ?? '')).toMatchObject({ params: { requestId: last().id } });
  });
});

describe('a watched legacy server', () => {
  test.each([405, 404, 400])('that refuses the stream with %i is left alone', async (status) => {
    vi.useFakeTimers();
    try {
      const { connection, streams } = connect('legacy', 'streamable-http');
      connection.watch(['tools'], {
        open: () => undefined,
        ended: () => undefined,
        random: () => 0,
        now: () => 0,
      });
      const http = { status, body: Buffer.alloc(0) };
      streams[0]?.closed(new ChannelError('status', 'no', { sent: true, http }));
      await vi.advanceTimersByTimeAsync(600_000);
      expect(streams).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test.each([429, 503])('that refuses the stream with %i is asked again', async (status) => {
    vi.useFakeTimers();
    try {
      const { connection, streams } = connect('legacy', 'streamable-http');
      const stop = connection.watch(['tools'], {
        open: () => undefined,
        ended: () => undefined,
        random: () => 0,
        now: () => 0,
      });
      const http = { status, body: Buffer.alloc(0) };
      streams[0]?.closed(new ChannelError('status', 'no', { sent: true, http }));
      await vi.advanceTimersByTimeAsync(600);
      expect(streams).toHaveLength(2);
      stop();
    } finally {
      vi.useRealTimers();
    }
  });

  test('tells on its stream what changed', () => {
    const { connection, streams, told } = connect('legacy', 'streamable-http');
    const stop = connection.watch(['tools'], {
      open: () => told.push('open'),
      ended: () => undefined,
      random: () => 0,
      now: () => 0,
    });
    streams[0]?.open();
    streams[0]?.message(Buffer.from('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'));
    expect(told).toEqual(['open', 'changed tools']);
    stop();
  });
});

describe('a call whose caller does not answer what the server asks', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const asks = (id: number, method = 'elicitation/create') =>
    Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params: { message: 'who?' } }));

  /** One that was asked, and its reply with the question. */
  async function asked(method?: string) {
    const opened = connect('legacy');
    const { call, target, notified } = callOf({
      more: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} }, sampling: {} } },
    });
    const reply = opened.connection.send(call, target);
    opened.connection.receive(asks(7, method), undefined);
    return { ...opened, notified, reply: await reply };
  }

  test('is left to end by itself: the server hears so, and its answer is dropped', async () => {
    const { connection, posted, cancelled, last, reply } = await asked();
    reply.leave?.('refused');
    expect(posted.map(({ body }) => JSON.parse(body))).toEqual([
      { jsonrpc: '2.0', id: 7, result: { action: 'cancel' } },
    ]);
    expect(connection.callsInFlight).toBe(1);
    connection.receive(asks(8), undefined);
    expect(JSON.parse(posted.at(-1)?.body ?? '')).toEqual({
      jsonrpc: '2.0',
      id: 8,
      result: { action: 'cancel' },
    });
    last().exchange.reply(answerTo(last()));
    expect(connection.callsInFlight).toBe(0);
    await vi.advanceTimersByTimeAsync(700_000);
    expect(cancelled).toEqual([]);
  });

  test('can not be sampled for: the server hears an error', async () => {
    const { posted, reply } = await asked('sampling/createMessage');
    reply.leave?.('refused');
    expect(JSON.parse(posted[0]?.body ?? '')).toMatchObject({ id: 7, error: { code: 4030 } });
  });

  test('is cancelled where the server does not end it within 10 s', async () => {
    const { connection, cancelled, last, reply } = await asked();
    reply.leave?.('refused');
    await vi.advanceTimersByTimeAsync(9_999);
    expect(cancelled).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(cancelled).toEqual([last().id]);
    expect(connection.callsInFlight).toBe(0);
  });

  test('is cancelled at once where the caller has cancelled it', async () => {
    const { connection, posted, cancelled, last, reply } = await asked();
    reply.leave?.('cancelled');
    reply.leave?.('cancelled');
    expect(cancelled).toEqual([last().id]);
    expect(connection.callsInFlight).toBe(0);
    expect(posted.map(({ body }) => JSON.parse(body))).toMatchObject([
      { id: 7, result: { action: 'cancel' } },
      { method: 'notifications/cancelled' },
    ]);
  });

  test('that has come back all the same is not left', async () => {
    const { connection, posted, cancelled, reply } = await asked();
    const { requestState } = (JSON.parse(textOf(reply)) as { result: { requestState: string } }).result;
    const { call, target } = callOf({
      more: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} }, sampling: {} } },
      retry: { requestState, inputResponses: { answer: { action: 'accept', content: {} } } },
    });
    quiet(connection.send(call, target));
    reply.leave?.('cancelled');
    expect(cancelled).toEqual([]);
    expect(posted.map(({ body }) => JSON.parse(body))).toEqual([
      { jsonrpc: '2.0', id: 7, result: { action: 'accept', content: {} } },
    ]);
  });
});
