import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createSeal } from '../../src/auth/seal.ts';
import { type CallContext, LegacyCall } from '../../src/downstream/legacy-call.ts';
import { LiveSession } from '../../src/downstream/live-session.ts';
import { ProjectedPages } from '../../src/downstream/projection.ts';
import { type Session, Sessions } from '../../src/downstream/session.ts';
import { createLog } from '../../src/observe/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { Secrets } from '../../src/observe/secrets.ts';
import { WholeAllowance } from '../../src/policy/allowance.ts';
import { asksOutcome, type Call, type Reply } from '../../src/protocol/call.ts';
import { type RequestMessage, scanInbound } from '../../src/protocol/message.ts';
import { parseExposition } from '../observe/exposition-text.ts';
import { bufferBytes, churnPool } from '../support/collected.ts';

const dayMs = 24 * 3_600_000;
const version = '2025-06-18';
const scan = { strict: true, depthMax: 64 };

function sessionsAt() {
  const metrics = createMetrics({ version: '1' });
  const clock = { ms: 1_000_000 };
  let count = 0;
  const sessions = new Sessions({
    seal: createSeal(Buffer.alloc(32), 'session', randomBytes),
    now: () => clock.ms,
    random: () => String(count++),
    live: new WholeAllowance(10),
    metrics,
    ended: () => undefined,
  });
  const durations = async () => {
    const { value } = parseExposition((await metrics.exposition()).text);
    const of = (part: string) =>
      value(`mcp_server_session_duration_seconds_${part}`, { mcp_protocol_version: version });
    return { count: of('count'), sum: of('sum') };
  };
  const create = (): Session => sessions.create(version, {}, { name: 'x', version: '1' }, 'ann');
  return { sessions, create, clock, durations };
}

function requestOf(method: string): RequestMessage {
  const inbound = scanInbound(
    Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} })),
    scan,
  );
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  return inbound.request;
}

describe('the duration of a session', () => {
  test('is told when it is ended, from its first moment on', async () => {
    const { sessions, create, clock, durations } = sessionsAt();
    const session = create();
    clock.ms += 90_000;
    sessions.end(session);
    expect(await durations()).toEqual({ count: 1, sum: 90 });
    expect(sessions.open(session.id, 'ann')).toBeUndefined();
    expect(await durations()).toEqual({ count: 1, sum: 90 });
  });

  test('is its life where a request comes after it, once', async () => {
    const { sessions, create, clock, durations } = sessionsAt();
    const session = create();
    clock.ms += 7 * dayMs - 1;
    expect(sessions.open(session.id, 'ann')).toBeDefined();
    clock.ms += 2 * dayMs;
    expect(sessions.open(session.id, 'bob')).toBeUndefined();
    expect((await durations()).count).toBeUndefined();
    expect(sessions.open(session.id, 'ann')).toBeUndefined();
    expect(sessions.open(session.id, 'ann')).toBeUndefined();
    expect(await durations()).toEqual({ count: 1, sum: (7 * dayMs) / 1000 });
  });
});

describe('what is kept of a session', () => {
  test('is one and the same for all clients that say the same of themselves', () => {
    const { sessions, create } = sessionsAt();
    const session = create();
    expect(create().meta).toBe(session.meta);
    const other = sessions.create(version, {}, { name: 'y', version: '1' }, 'ann');
    expect(other.meta).not.toBe(session.meta);
  });

  test('after a call has at most half a kilobyte of buffers, also where each client is another', () => {
    const { sessions, create } = sessionsAt();
    const count = 1_000;
    const text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}';
    const inbound = scanInbound(Buffer.from(text), scan);
    if (inbound.kind !== 'request') throw new Error(inbound.kind);
    // The first one makes the tables.
    const kept = [create()];
    const before = bufferBytes();
    for (let i = 0; i < count; i++) {
      const session = sessions.create(version, {}, { name: `client ${i}`, version: '1' }, 'ann');
      expect(session.meta.appendedTo(inbound.request, scan)).toBeDefined();
      churnPool();
      kept.push(session);
    }
    expect(bufferBytes() - before).toBeLessThan(count * 500);
    expect(kept.length).toBe(count + 1);
  });
});

describe('the limits of a session', () => {
  const counting = () => {
    const hits: string[] = [];
    return {
      hits,
      live: new LiveSession(
        () => undefined,
        (limit) => hits.push(limit),
      ),
    };
  };

  type Add = (live: LiveSession, at: number) => void;
  const addCall: Add = (live, at) =>
    live.addCall({
      id: Buffer.from(String(at)),
      abort: () => undefined,
      cut: () => undefined,
      before: undefined,
      after: undefined,
    });
  const ask: Add = (live, at) => void live.expect(String(at));
  const subscribe: Add = (live, at) => live.subscribed(`raw://${at}`, () => undefined);

  test.each([
    ['sessionCalls', 1_000, addCall],
    ['sessionQuestions', 100, ask],
    ['sessionSubscriptions', 500, subscribe],
  ] as const)('are counted: %s', (limit, max, add) => {
    const { hits, live } = counting();
    for (let at = 0; at < max; at++) add(live, at);
    expect(hits).toEqual([]);
    expect(() => add(live, max)).toThrow(`${max}`);
    expect(hits).toEqual([limit]);
  });

  test('are counted: rounds of questions in one call', async () => {
    const { hits, live } = counting();
    const asks = { q: { method: 'roots/list' } };
    const { ended, sent, left } = callThatAsks(live, asks, { limitHit: (limit) => hits.push(limit) });
    expect(await ended).toContain('asked back more than 16 times');
    expect(hits).toEqual(['rounds']);
    // Whose question is not put to the client is told that nobody comes back for it.
    expect(await left).toBe('refused');
    expect(sent).toHaveLength(17);
  });
});

test('a call whose answers are nested too deep to be sent on is refused, and its server is told so', async () => {
  const live = new LiveSession(
    () => undefined,
    () => undefined,
  );
  const noMetrics = { limitHit: () => undefined };
  const deep = JSON.parse(`${'['.repeat(scan.depthMax)}${']'.repeat(scan.depthMax)}`) as unknown;
  const { ended, sent, left } = callThatAsks(live, { q: { method: 'roots/list' } }, noMetrics, deep);
  expect(await ended).toContain('limits.nesting');
  expect(await left).toBe('refused');
  expect(sent).toHaveLength(1);
});

/** Runs a call of a client with roots, whose server asks this each time; what the client, and the server, are told in the end. */
function callThatAsks(
  live: LiveSession,
  inputRequests: object,
  metrics: CallContext['metrics'],
  roots: unknown = [],
) {
  const result = JSON.stringify({ resultType: 'input_required', inputRequests });
  let leave = (_why: string): void => undefined;
  const left = new Promise<string>((resolve) => {
    leave = resolve;
  });
  const reply: Reply = {
    parts: [Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${result}}`)],
    outcome: asksOutcome,
    status: 200,
    leave: (why) => leave(why),
  };
  const session = sessionsAt().sessions.create(version, { roots: {} }, { name: 'x', version: '1' }, 'ann');
  const sent: Call[] = [];
  const ended = new Promise<string>((resolve) => {
    const told = (message: Buffer): void => resolve(message.toString());
    const answering = {
      notify: () => undefined,
      send: (question: Buffer) => {
        const { id } = JSON.parse(question.toString()) as { id: string };
        queueMicrotask(() => live.answer(id, { kind: 'result', result: { roots } }));
      },
      reply: told,
      cancelled: told,
      pass: () => undefined,
    };
    new LegacyCall(requestOf('tools/call'), { session, live, arrivedMs: undefined }, answering, {
      handler: (call) => {
        sent.push(call);
        return Promise.resolve(reply);
      },
      scan,
      pages: new ProjectedPages(),
      metrics,
      log: createLog({ level: 'silent', secrets: new Secrets() }),
      replica: 'r',
      random: () => 'q',
    }).run();
  });
  return { ended, sent, left };
}

describe('a call that only waits to be sent again', () => {
  const waiting = () => {
    const live = new LiveSession(
      () => undefined,
      () => undefined,
    );
    return { live, ...callThatAsks(live, {}, { limitHit: () => undefined }) };
  };

  test('is not, once the client took it back', async () => {
    const { live, sent, ended } = waiting();
    live.cancel('1', 'The client cancelled the call');
    expect(JSON.parse(await ended)).toMatchObject({ id: 1, error: { code: 4990 } });
    expect(sent).toHaveLength(1);
  });

  test('is not, once it was cut off, and is told that at once', async () => {
    const { live, sent, ended, left } = waiting();
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    const { length } = sent;
    live.cut();
    expect(JSON.parse(await ended)).toMatchObject({ id: 1, error: { code: 5021 } });
    expect(await left).toBe('cancelled');
    expect(sent).toHaveLength(length);
  });

  test('is not, where it was cut off before it had an answer', async () => {
    const { live, sent, ended, left } = waiting();
    live.cut();
    expect(JSON.parse(await ended)).toMatchObject({ id: 1, error: { code: 5021 } });
    expect(await left).toBe('cancelled');
    expect(sent).toHaveLength(1);
  });
});
