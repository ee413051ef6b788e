import { describe, expect, test } from 'vitest';
import type { CallLog } from '../../src/gateway/call-log.ts';
import type { Handler } from '../../src/gateway/layers.ts';
import { measured } from '../../src/gateway/measured.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { Call, okOutcome, type Reply, type ReplyReader } from '../../src/protocol/call.ts';
import { errorMessage, own, RpcError } from '../../src/protocol/errors.ts';
import { scanInbound } from '../../src/protocol/message.ts';
import { ChannelError } from '../../src/upstream/channel.ts';
import { parseExposition } from '../observe/exposition-text.ts';

const body = Buffer.from('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"up__echo"}}');

function callOf(version?: string): Call {
  const inbound = scanInbound(body, { strict: true, depthMax: 64 });
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  const call = new Call(inbound.request, { name: 'ann' }, undefined, () => undefined, version);
  call.known = { tool: 'up__echo' };
  call.upstream = 'up';
  return call;
}

/** A layer around a handler, with a clock that the test sets. */
function around(handler: Handler) {
  const metrics = createMetrics({ version: '1' });
  const clock = { ms: 0 };
  const logged: unknown[] = [];
  const log: CallLog = (_, outcome, ms, bytes, cause) => logged.push({ outcome, ms, bytes, cause });
  const answer = measured({ metrics, nowMs: () => clock.ms, log })(handler);
  const value = async (name: string, more: Readonly<Record<string, string>> = {}) => {
    const labels = {
      gen_ai_tool_name: 'up__echo',
      mcp_method_name: 'tools/call',
      mcp_protocol_version: '2026-07-28',
    };
    return parseExposition((await metrics.exposition()).text).value(name, { ...labels, ...more });
  };
  const plain = async (name: string, labels: Readonly<Record<string, string>> = {}) =>
    parseExposition((await metrics.exposition()).text).value(name, labels);
  return { answer, clock, logged, value, plain };
}

const duration = 'mcp_server_operation_duration_seconds';

describe('a call', () => {
  test('is timed from its arrival, with what no upstream took apart', async () => {
    const { answer, clock, value, plain } = around((call) => {
      clock.ms += 500;
      call.upstreamMs += 450;
      return Promise.resolve({
        parts: [Buffer.from('{}'), Buffer.from('[]')],
        outcome: okOutcome,
        status: 200,
      });
    });
    clock.ms = 10_000;
    const call = callOf();
    call.arrivedMs = 9_900;
    await answer(call);
    expect(await value(`${duration}_sum`)).toBeCloseTo(0.6);
    const overhead = { mcp_method_name: 'tools/call' };
    expect(await plain('mcpyard_overhead_seconds_sum', overhead)).toBeCloseTo(0.15);
    expect(await value('mcpyard_request_bytes_total')).toBe(body.length);
    expect(await value('mcpyard_response_bytes_total')).toBe(4);
    expect(await plain('mcpyard_requests_in_flight')).toBe(0);
  });

  test('is timed from the layer on where its edge does not tell when it arrived', async () => {
    const { answer, clock, value } = around(() => {
      clock.ms += 200;
      return Promise.resolve({ parts: [], outcome: okOutcome, status: 200 });
    });
    clock.ms = 10_000;
    await answer(callOf());
    expect(await value(`${duration}_sum`)).toBeCloseTo(0.2);
  });

  test('counts under the revision of its client', async () => {
    const { answer, value } = around(() => Promise.resolve({ parts: [], outcome: okOutcome, status: 200 }));
    await answer(callOf('2025-06-18'));
    expect(await value(`${duration}_count`, { mcp_protocol_version: '2025-06-18' })).toBe(1);
  });

  test('that fails counts with its code, its limit and the bytes of its error', async () => {
    const error = new RpcError(own.overLimit, 'Too many', { limit: 'parkedCalls' });
    const { answer, logged, value, plain } = around(() => Promise.reject(error));
    await expect(answer(callOf())).rejects.toBe(error);
    const bytes = errorMessage(Buffer.from('7'), error).length;
    expect(await value(`${duration}_count`, { error_type: '4290' })).toBe(1);
    expect(await value('mcpyard_response_bytes_total', { error_type: '4290' })).toBe(bytes);
    expect(await plain('mcpyard_limits_hit_total', { limit: 'parkedCalls' })).toBe(1);
    expect(logged).toEqual([{ outcome: { kind: 'error', error: '4290' }, ms: 0, bytes, cause: error }]);
  });

  test('that was taken back gets no bytes', async () => {
    const { answer, value } = around(() => Promise.reject(new RpcError(own.cancelled, 'Gone')));
    await expect(answer(callOf())).rejects.toThrow('Gone');
    expect(await value('mcpyard_response_bytes_total', { error_type: '4990' })).toBe(0);
  });
});

describe('a long reply', () => {
  /** A reply whose rest the test feeds. */
  function long() {
    let reader: ReplyReader | undefined;
    let destroyed = 0;
    const reply: Reply = {
      parts: [Buffer.from('head')],
      outcome: okOutcome,
      status: 200,
      rest: {
        read: (given) => {
          reader = given;
        },
        resume: () => undefined,
        destroy: () => destroyed++,
      },
    };
    return {
      reply,
      data: (text: string) => reader?.data(Buffer.from(text)),
      end: () => reader?.end(),
      fail: (cause: Error) => reader?.fail(cause),
      destroyed: () => destroyed,
    };
  }

  const read = (reply: Reply) => {
    const heard: string[] = [];
    reply.rest?.read({
      data: (chunk) => heard.push(chunk.toString()) > 0,
      end: () => heard.push('end'),
      fail: (cause) => heard.push(cause.message),
    });
    return heard;
  };

  test('is timed until it begins, and its bytes and its line are told when it is over', async () => {
    const { reply, data, end } = long();
    const { answer, clock, logged, value } = around(() => Promise.resolve(reply));
    const heard = read(await answer(callOf()));
    clock.ms = 3_000;
    data('12345');
    expect(logged).toEqual([]);
    expect(await value('mcpyard_response_bytes_total')).toBe(0);
    data('678');
    end();
    expect(heard).toEqual(['12345', '678', 'end']);
    expect(await value(`${duration}_sum`)).toBe(0);
    expect(await value('mcpyard_response_bytes_total')).toBe(12);
    expect(logged).toEqual([{ outcome: okOutcome, ms: 3_000, bytes: 12, cause: undefined }]);
  });

  test("that breaks is its upstream's failure, and a limit where it was too long", async () => {
    const { reply, data, fail } = long();
    const { answer, logged, plain } = around(() => Promise.resolve(reply));
    const heard = read(await answer(callOf()));
    data('1');
    fail(new ChannelError('too-big', 'too long', { sent: true }));
    expect(heard).toEqual(['1', 'too long']);
    expect(logged).toMatchObject([{ outcome: { kind: 'error', error: '5020' }, bytes: 5 }]);
    const failed = { upstream: 'up', reason: 'too-big' };
    expect(await plain('mcpyard_upstream_errors_total', failed)).toBe(1);
    expect(await plain('mcpyard_limits_hit_total', { limit: 'result' })).toBe(1);
  });

  test('that its client leaves is cancelled, once, and nobody is to blame', async () => {
    const { reply, data, destroyed } = long();
    const { answer, logged, plain } = around(() => Promise.resolve(reply));
    const got = await answer(callOf());
    read(got);
    data('1');
    got.rest?.destroy();
    got.rest?.destroy();
    expect(destroyed()).toBe(2);
    expect(logged).toMatchObject([{ outcome: { kind: 'error', error: '4990' }, bytes: 5 }]);
    expect(await plain('mcpyard_upstream_errors_total', { upstream: 'up', reason: 'lost' })).toBeUndefined();
  });
});
