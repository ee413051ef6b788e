import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createSeal } from '../../src/auth/seal.ts';
import { Call, type Reply } from '../../src/protocol/call.ts';
import { paramOf, scanInbound } from '../../src/protocol/message.ts';
import { CallerRoots } from '../../src/upstream/caller-roots.ts';
import type { Channel, Exchange } from '../../src/upstream/channel.ts';
import { Connection } from '../../src/upstream/connection.ts';
import { legacyDialect } from '../../src/upstream/dialect.ts';
import { Parks } from '../../src/upstream/parks.ts';
import { SealedTaskIds } from '../../src/upstream/task-ids.ts';

const scan = { strict: false, depthMax: 64 };

type Json = Readonly<Record<string, unknown>>;

/** A legacy server on one channel, of one caller where it is isolated; what it says is up to the test. */
function connect({
  isolated = false,
  transport = 'stdio',
}: {
  isolated?: boolean;
  transport?: Channel['transport'];
} = {}) {
  const sent: { readonly id: number; readonly method: string; readonly exchange: Exchange }[] = [];
  const posted: Json[] = [];
  const refused: string[] = [];
  const logged: string[] = [];
  const nothing = () => undefined;
  const channel: Channel = {
    transport,
    send: ({ id, method }, exchange) => sent.push({ id, method, exchange }),
    post: (body) => {
      posted.push(JSON.parse(body.toString()));
      return Promise.resolve();
    },
    cancel: nothing,
    close: () => Promise.resolve(),
  };
  const sealOf = (purpose: string) => createSeal(Buffer.alloc(32), purpose, randomBytes);
  const connection = new Connection(channel, legacyDialect('2025-11-25', scan), {
    upstream: 'up',
    scan,
    resultBytesMax: 1_000_000,
    roots: ['file:///configured'],
    callerRoots: isolated ? new CallerRoots(['file:///configured']) : undefined,
    state: { upstream: 'up', seal: sealOf('state'), now: Date.now },
    taskIds: new SealedTaskIds(sealOf('task')),
    parks: new Parks({
      upstream: 'up',
      seal: sealOf('park'),
      replica: 'here',
      random: () => String(Math.random()),
      now: Date.now,
    }),
    events: {
      refused: (method, why) => refused.push(`${method}: ${why}`),
      recover: () => Promise.resolve(),
      logged: (level) => logged.push(level),
      listChanged: nothing,
      resourceUpdated: nothing,
      taskChanged: nothing,
      failed: nothing,
      passed: nothing,
      dropped: nothing,
    },
  });
  /** What the server says on the channel, outside any request. */
  const says = (message: object): void =>
    connection.receive(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message })), undefined);
  const elicits = (id: string): void =>
    says({ id, method: 'elicitation/create', params: { message: 'Who?', requestedSchema: {} } });
  const answerTo = (id: string): Json | undefined => posted.find((message) => message['id'] === id);
  return { connection, sent, posted, refused, logged, says, elicits, answerTo };
}

interface Calling {
  readonly heard: readonly Json[];
  /** The reply so far. */
  reply(): Json | undefined;
  /** The caller answers nothing of what it was asked. */
  refuse(): void;
  /** The caller wants no answer any more. */
  abort(): void;
}

/** A call of somebody who can be asked. */
function callTool(
  { connection }: ReturnType<typeof connect>,
  name: string,
  {
    params = {},
    capabilities = { elicitation: {} },
    level,
  }: { params?: object; capabilities?: object; level?: string } = {},
): Calling {
  const _meta = {
    'io.modelcontextprotocol/clientCapabilities': capabilities,
    ...(level === undefined ? {} : { 'io.modelcontextprotocol/logLevel': level }),
  };
  const body = {
    jsonrpc: '2.0',
    id: name,
    method: 'tools/call',
    params: { name, arguments: {}, ...params, _meta },
  };
  const inbound = scanInbound(Buffer.from(JSON.stringify(body)), { ...scan, strict: true });
  if (inbound.kind !== 'request') throw new Error('no request');
  const heard: Json[] = [];
  let leave: Reply['leave'];
  const call = new Call(inbound.request, { name: 'ann' }, undefined, (message) =>
    heard.push(JSON.parse(message.toString())),
  );
  let reply: Json | undefined;
  connection
    .send(call, { member: paramOf(call.request, 'name'), name, paramHeaders: [] })
    .then(({ parts, leave: left }: Reply) => {
      leave = left;
      reply = JSON.parse(Buffer.concat(parts).toString());
    })
    .catch((error: unknown) => {
      reply = { failed: String(error) };
    });
  return {
    heard,
    reply: () => reply,
    refuse: () => leave?.('refused'),
    abort: () => call.signal.abort(new Error('gone')),
  };
}

const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);
const resultOf = (calling: Calling): Json => (calling.reply()?.['result'] ?? {}) as Json;
const stateOf = (calling: Calling): unknown => resultOf(calling)['requestState'];
const isAsked = (calling: Calling): boolean => resultOf(calling)['resultType'] === 'input_required';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a question on a channel that several callers share', () => {
  test('is refused while two calls are open', () => {
    const at = connect();
    callTool(at, 'one');
    callTool(at, 'two');
    at.elicits('q');
    expect(at.answerTo('q')).toMatchObject({ error: { code: -32601 } });
    expect(at.refused).toEqual(['elicitation/create: it can not be tied to one call']);
  });

  test('can be put soon after a caller who was asked has given up', async () => {
    const at = connect();
    const gone = callTool(at, 'gone');
    at.elicits('q1');
    await settle();
    expect(isAsked(gone)).toBe(true);
    gone.refuse();
    expect(at.answerTo('q1')).toMatchObject({ result: { action: 'cancel' } });
    const [first] = at.sent;
    first?.exchange.reply(Buffer.from(`{"jsonrpc":"2.0","id":${first.id},"result":{"content":[]}}`));
    const next = callTool(at, 'next');
    at.elicits('q2');
    await settle();
    expect(isAsked(next)).toBe(true);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(at.posted.filter(({ method }) => method === 'notifications/cancelled')).toEqual([]);
  });

  test('can be put again once the server has answered a call that was cancelled', async () => {
    const at = connect();
    const gone = callTool(at, 'gone');
    at.elicits('q1');
    await settle();
    gone.refuse();
    await vi.advanceTimersByTimeAsync(10_000);
    const next = callTool(at, 'next');
    at.elicits('q2');
    expect(at.answerTo('q2')).toMatchObject({ error: { code: -32601 } });
    at.connection.stray(at.sent[0]?.id ?? 0);
    at.elicits('q3');
    await settle();
    expect(isAsked(next)).toBe(true);
  });

  test('of a call whose caller gave up is answered as that caller would, and the call is cancelled if it goes on', async () => {
    const at = connect();
    const gone = callTool(at, 'gone');
    at.elicits('q1');
    await settle();
    gone.refuse();
    at.elicits('q2');
    expect(at.answerTo('q2')).toMatchObject({ result: { action: 'cancel' } });
    await vi.advanceTimersByTimeAsync(10_000);
    const requestId = at.sent[0]?.id;
    expect(at.posted.at(-1)).toMatchObject({ method: 'notifications/cancelled', params: { requestId } });
    expect(at.connection.callsInFlight).toBe(0);
  });

  test('makes those who were asked a minute before and stand in its way count as gone', async () => {
    const at = connect();
    callTool(at, 'silent');
    at.elicits('q1');
    await vi.advanceTimersByTimeAsync(59_000);
    callTool(at, 'other');
    at.elicits('q2');
    expect(at.answerTo('q1')).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1_000);
    at.elicits('q3');
    expect(at.answerTo('q3')).toMatchObject({ error: { code: -32601 } });
    expect(at.answerTo('q1')).toMatchObject({ result: { action: 'cancel' } });
  });

  test('for roots is answered from the config, whatever the caller has', () => {
    const at = connect();
    callTool(at, 'one', { capabilities: { roots: {} } });
    at.says({ id: 'q', method: 'roots/list' });
    expect(at.answerTo('q')).toMatchObject({ result: { roots: [{ uri: 'file:///configured' }] } });
  });
});

describe('a call that follows one whose caller refused to answer', () => {
  type At = ReturnType<typeof connect>;

  /** A call whose caller refused, and which the server has not ended. */
  async function left(at: At): Promise<void> {
    const gone = callTool(at, 'gone');
    at.says({ id: 'q1', method: 'elicitation/create', params: { message: 'Who?', requestedSchema: {} } });
    await settle();
    gone.refuse();
  }
  const end = ({ sent }: At, which = 0): void => {
    const exchange = sent[which]?.exchange;
    exchange?.reply(Buffer.from(`{"jsonrpc":"2.0","id":${sent[which]?.id},"result":{"content":[]}}`));
  };

  test.each(['stdio', 'sse'] as const)(
    'is sent once that is over, so that it can be asked itself (%s)',
    async (transport) => {
      const at = connect({ transport });
      await left(at);
      const next = callTool(at, 'next');
      await vi.advanceTimersByTimeAsync(999);
      expect(at.sent).toHaveLength(1);
      expect(at.connection.callsInFlight).toBe(1);
      end(at);
      await settle();
      expect(at.sent).toHaveLength(2);
      at.elicits('q2');
      await settle();
      expect(isAsked(next)).toBe(true);
    },
  );

  test('is sent a second after it was refused at the latest, and can not be asked before it is over', async () => {
    const at = connect();
    await left(at);
    await vi.advanceTimersByTimeAsync(400);
    callTool(at, 'next');
    await vi.advanceTimersByTimeAsync(599);
    expect(at.sent).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(at.sent).toHaveLength(2);
    at.elicits('q2');
    expect(at.answerTo('q2')).toMatchObject({ error: { code: -32601 } });
    end(at, 1);
    await settle();
    callTool(at, 'third');
    expect(at.sent).toHaveLength(3);
  });

  test.each<[string, Parameters<typeof connect>[0], Parameters<typeof callTool>[2]]>([
    ['its caller can not be asked', {}, { capabilities: { roots: {} } }],
    ["the server is one caller's", { isolated: true }, {}],
    ['questions come on the streams of their calls', { transport: 'streamable-http' }, {}],
  ])('is sent at once where %s', async (_, server, calling) => {
    const at = connect(server);
    await left(at);
    callTool(at, 'next', calling);
    expect(at.sent).toHaveLength(2);
  });

  test('is sent at once where another stands in the way of its questions all the same', async () => {
    const at = connect();
    await left(at);
    callTool(at, 'other', { capabilities: {} });
    callTool(at, 'next');
    expect(at.sent).toHaveLength(3);
    at.elicits('q2');
    expect(at.answerTo('q2')).toMatchObject({ error: { code: -32601 } });
  });

  test('is not sent where its caller gives up first', async () => {
    const at = connect();
    await left(at);
    const next = callTool(at, 'next');
    next.abort();
    await settle();
    expect(next.reply()).toEqual({ failed: 'Error: gone' });
    const posted = at.posted.length;
    end(at);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([at.sent.length, at.posted.length]).toEqual([1, posted]);
  });

  test('waits with 15 others at most', async () => {
    const at = connect();
    await left(at);
    for (let index = 0; index < 17; index++) callTool(at, `next ${index}`);
    expect(at.sent).toHaveLength(2);
    end(at);
    await settle();
    expect(at.sent).toHaveLength(18);
  });

  test('learns from the channel that it was closed', async () => {
    const at = connect();
    await left(at);
    callTool(at, 'next');
    const timers = vi.getTimerCount();
    await at.connection.close();
    await settle();
    expect(at.sent).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(timers - 1);
  });
});

describe("a question on a channel that is one caller's", () => {
  test('is put to the newest call that waits and can be asked, however many are open', async () => {
    const at = connect({ isolated: true });
    const old = callTool(at, 'old');
    const asked = callTool(at, 'asked');
    const mute = callTool(at, 'mute', { capabilities: {} });
    at.elicits('q');
    await settle();
    expect([old, asked, mute].map(isAsked)).toEqual([false, true, false]);
  });

  test('waits for the next round of the only call that could be asked', async () => {
    const at = connect({ isolated: true });
    const first = callTool(at, 'tool');
    at.elicits('q1');
    at.elicits('q2');
    await settle();
    const requestState = stateOf(first);
    const second = callTool(at, 'tool', {
      params: { inputResponses: { answer: { action: 'decline' } }, requestState },
    });
    await settle();
    expect(at.answerTo('q1')).toMatchObject({ result: { action: 'decline' } });
    expect(isAsked(second)).toBe(true);
  });

  test('for roots outside any call is answered from the config, and the next call asks the caller first', async () => {
    const at = connect({ isolated: true });
    at.says({ id: 'q1', method: 'roots/list' });
    await settle();
    expect(at.answerTo('q1')).toMatchObject({ result: { roots: [{ uri: 'file:///configured' }] } });
    const first = callTool(at, 'tool', { capabilities: { roots: {} } });
    await settle();
    expect(isAsked(first)).toBe(true);
    expect(at.sent).toEqual([]);
    const requestState = stateOf(first);
    const roots = [{ uri: 'file:///own' }];
    callTool(at, 'tool', {
      capabilities: { roots: {} },
      params: { inputResponses: { answer: { roots } }, requestState },
    });
    await settle();
    expect(at.posted.at(-1)).toMatchObject({ method: 'notifications/roots/list_changed' });
    expect(at.sent).toEqual([]);
    at.says({ id: 'q2', method: 'roots/list' });
    await vi.advanceTimersByTimeAsync(1);
    expect(at.answerTo('q2')).toMatchObject({ result: { roots } });
    expect(at.sent.map(({ method }) => method)).toEqual(['tools/call']);
  });

  test('for roots that never comes again holds a call up for a second', async () => {
    const at = connect({ isolated: true });
    at.says({ id: 'q1', method: 'roots/list' });
    await settle();
    const first = callTool(at, 'tool', { capabilities: { roots: {} } });
    await settle();
    const requestState = stateOf(first);
    callTool(at, 'tool', {
      capabilities: { roots: {} },
      params: { inputResponses: { answer: { roots: [] } }, requestState },
    });
    await vi.advanceTimersByTimeAsync(999);
    expect(at.sent).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(at.sent).toHaveLength(1);
  });

  test('asks a caller without roots for none', async () => {
    const at = connect({ isolated: true });
    at.says({ id: 'q', method: 'roots/list' });
    callTool(at, 'tool', { capabilities: {} });
    await settle();
    expect(at.sent.map(({ method }) => method)).toEqual(['tools/call']);
  });
});

describe("a log line on a channel that is one caller's", () => {
  const line = (level: string) => ({ method: 'notifications/message', params: { level, data: 'x' } });

  test('goes to a call that wants it, and without one to whoever listens for the caller', async () => {
    const at = connect({ isolated: true });
    const two = callTool(at, 'two', { level: 'warning' });
    const [level] = at.sent;
    level?.exchange.reply(Buffer.from(`{"jsonrpc":"2.0","id":${level.id},"result":{}}`));
    await settle();
    const one = callTool(at, 'one');
    expect(at.sent.map(({ method }) => method)).toEqual(['logging/setLevel', 'tools/call', 'tools/call']);
    at.says(line('error'));
    expect(two.heard).toMatchObject([line('error')]);
    at.says(line('info'));
    expect(at.logged).toEqual(['info']);
    expect([one.heard.length, two.heard.length]).toEqual([0, 1]);
  });
});
