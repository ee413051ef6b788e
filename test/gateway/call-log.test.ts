import { describe, expect, test } from 'vitest';
import { type CallLogOptions, callLog } from '../../src/gateway/call-log.ts';
import { createLog } from '../../src/observe/log.ts';
import { Secrets } from '../../src/observe/secrets.ts';
import { asksOutcome, Call, type Outcome, okOutcome } from '../../src/protocol/call.ts';
import { own, RpcError } from '../../src/protocol/errors.ts';
import { scanInbound } from '../../src/protocol/message.ts';
import { ChannelError } from '../../src/upstream/channel.ts';

function callOf(method: string, params: object = {}): Call {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  const inbound = scanInbound(body, { strict: true, depthMax: 64 });
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  return new Call(inbound.request, { name: 'ann' }, undefined, () => undefined);
}

function toolCall(): Call {
  const call = callOf('tools/call', { name: 'up__echo', arguments: { word: 'argument' } });
  call.known = { tool: 'up__echo' };
  call.upstream = 'up';
  return call;
}

const failure = (code: number): Outcome => ({ kind: 'error', error: String(code) });

function logOf(calls: CallLogOptions['calls'], nowMs = (): number => 0) {
  const texts: string[] = [];
  const destination = { write: (line: string): number => texts.push(line) };
  const log = callLog({
    log: createLog({ level: 'debug', secrets: new Secrets(), pretty: false, destination }),
    calls,
    nowMs,
  });
  return { log, texts, lines: () => texts.map((text) => JSON.parse(text)) };
}

describe('the line of a call', () => {
  test('says who called what, where, how long it took and how it ended', () => {
    const { log, lines } = logOf('all');
    const call = toolCall();
    log?.(call, okOutcome, 12.3456, 77, undefined);
    expect(lines()).toEqual([
      {
        level: 'info',
        time: expect.any(String),
        caller: 'ann',
        method: 'tools/call',
        tool: 'up__echo',
        upstream: 'up',
        ms: 12.35,
        outcome: 'ok',
        requestBytes: call.request.bytes.length,
        bytes: 77,
        msg: 'tools/call: ok',
      },
    ]);
  });

  test('says the code of an error and what kind of failure it was, and repeats no message', () => {
    const { log, lines, texts } = logOf('errors');
    const reset = Object.assign(new Error('argument'), { code: 'ECONNRESET' });
    const lost = new ChannelError('status', 'argument', {
      sent: true,
      http: { status: 502, body: Buffer.from('argument') },
      cause: reset,
    });
    const error = new RpcError(own.upstreamBroken, 'argument', { cause: lost });
    log?.(toolCall(), failure(own.upstreamBroken), 1, 1, error);
    expect(lines()).toMatchObject([
      { level: 'warn', outcome: 'error', code: 5020, reason: 'status', status: 502, errno: 'ECONNRESET' },
    ]);
    expect(texts.join()).not.toContain('argument');
  });

  test.each([
    [okOutcome, 'ok', 'info'],
    [asksOutcome, 'input_required', 'info'],
    [{ kind: 'error', error: 'tool_error' } as const, 'tool_error', 'warn'],
    [failure(own.cancelled), 'cancelled', 'warn'],
    [failure(-32602), 'error', 'warn'],
  ])('of a call that ended with %j says %s', (outcome, word, level) => {
    const { log, lines } = logOf('all');
    log?.(toolCall(), outcome, 1, 1, undefined);
    expect(lines()).toMatchObject([{ outcome: word, level, msg: `tools/call: ${word}` }]);
  });

  test('does not repeat names that clients invent', () => {
    const { log, lines, texts } = logOf('all');
    log?.(callOf('evil/secret-method', { name: 'secret-name' }), failure(-32601), 1, 1, undefined);
    log?.(callOf('resources/read', { uri: 'raw://secret?token=secret' }), okOutcome, 1, 1, undefined);
    expect(lines()).toMatchObject([{ method: '_OTHER' }, { method: 'resources/read' }]);
    expect(texts.join()).not.toContain('secret');
  });

  test('has the name that the client used', () => {
    const { log, lines } = logOf('all');
    const call = callOf('server/discover');
    call.alias = 'initialize';
    log?.(call, okOutcome, 1, 1, undefined);
    expect(lines()).toMatchObject([{ method: 'initialize', msg: 'initialize: ok' }]);
  });
});

describe('log.calls', () => {
  test('is no log where it is off', () => {
    expect(logOf('off').log).toBeUndefined();
  });

  test('leaves out what went well where it is errors, and the end of a listen', () => {
    const { log, lines } = logOf('errors');
    log?.(toolCall(), okOutcome, 1, 1, undefined);
    log?.(toolCall(), asksOutcome, 1, 1, undefined);
    log?.(callOf('subscriptions/listen'), failure(own.cancelled), 1, 1, undefined);
    log?.(toolCall(), failure(own.cancelled), 1, 1, undefined);
    expect(lines().map(({ method, outcome }) => [method, outcome])).toEqual([['tools/call', 'cancelled']]);
  });

  test('lets nobody flood the log with errors, and says how many lines are missing', () => {
    let now = 0;
    const { log, lines } = logOf('errors', () => now);
    for (let at = 0; at < 1_000; at++) log?.(toolCall(), failure(-32602), 1, 1, undefined);
    expect(lines()).toHaveLength(100);
    now = 1_000;
    log?.(toolCall(), failure(-32602), 1, 1, undefined);
    expect(lines().at(-1)).toMatchObject({ dropped: 900 });
  });

  test('drops nothing where it is all', () => {
    const { log, lines } = logOf('all');
    for (let at = 0; at < 200; at++) log?.(toolCall(), failure(-32602), 1, 1, undefined);
    expect(lines()).toHaveLength(200);
  });
});
