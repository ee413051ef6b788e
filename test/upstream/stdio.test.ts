import { isUtf8 } from 'node:buffer';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { own, RpcError } from '../../src/protocol/errors.ts';
import type { Routed } from '../../src/upstream/channel.ts';
import { ChannelError, type Exchange, type Outgoing } from '../../src/upstream/channel.ts';
import { readMarker, readProcesses } from '../../src/upstream/process-table.ts';
import { StdioChannel, type StdioOptions } from '../../src/upstream/stdio.ts';

const script = (name: string): string =>
  fileURLToPath(new URL(`../support/children/${name}`, import.meta.url));

/** What the gateway's scanner does, by parsing. */
function route(line: Buffer): Routed {
  if (!isUtf8(line)) return { kind: 'noise' };
  try {
    const value: unknown = JSON.parse(line.toString());
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return { kind: 'noise' };
    if ('method' in value) return { kind: 'message' };
    if (!('result' in value) && !('error' in value)) return { kind: 'noise' };
    return { kind: 'response', id: 'id' in value && typeof value.id === 'number' ? value.id : undefined };
  } catch {
    return { kind: 'noise' };
  }
}

interface Upstream {
  readonly channel: StdioChannel;
  readonly messages: string[];
  readonly dropped: string[];
  readonly closed: Error[];
  stderrBytes: number;
  /** The result of a call, or its failure. */
  call(method: string, params?: object): Promise<unknown>;
}

const channels: StdioChannel[] = [];
const instance = `stdio-test-${process.pid}`;
let nextId = 0;

const outgoing = (id: number, method: string, params: object = {}): Outgoing => ({
  id,
  method,
  body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params })),
  headers: [],
});

const exchange = (resolve: (result: unknown) => void, reject: (error: Error) => void): Exchange => ({
  message: () => reject(new Error('a message on an exchange')),
  reply: (head) => {
    resolve(JSON.parse(head.toString()).result);
    return true;
  },
  fail: reject,
});

type Overrides = Partial<Pick<StdioOptions, 'limits' | 'mask'>> & { command?: string };

function open(args: readonly string[] = [script('speaker.mjs')], overrides: Overrides = {}): Upstream {
  const messages: string[] = [];
  const dropped: string[] = [];
  const closed: Error[] = [];
  const channel = new StdioChannel({
    target: { command: overrides.command ?? process.execPath, args, env: {}, cwd: undefined },
    name: 'x',
    limits: overrides.limits ?? { lineBytesMax: 20_000_000, queueBytesMax: 10_000_000, exchangesMax: 1000 },
    instance,
    log: { debug: () => {}, warn: () => {} },
    events: {
      message: (line) => messages.push(line.toString()),
      closed: (cause) => closed.push(cause),
    },
    route,
    mask: overrides.mask ?? ((text) => text),
    onStderr: (chunk) => {
      upstream.stderrBytes += chunk.length;
    },
    onNoise: (why, line) => dropped.push(`${why}: ${line.toString('latin1', 0, 60)}`),
  });
  const upstream: Upstream = {
    channel,
    messages,
    dropped,
    closed,
    stderrBytes: 0,
    call: (method, params) =>
      new Promise((resolve, reject) => {
        channel.send(outgoing(++nextId, method, params), exchange(resolve, reject));
      }),
  };
  channels.push(channel);
  return upstream;
}

const failureOf = async (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    (result) => `no failure but ${JSON.stringify(result)}`,
    (error: unknown) => error,
  );

afterEach(async () => {
  await Promise.all(channels.splice(0).map((channel) => channel.close()));
  const left: number[] = [];
  for (const { pid, alive } of await readProcesses())
    if (alive && (await readMarker(pid))?.startsWith(instance)) left.push(pid);
  expect(left).toEqual([]);
});

describe('answers over stdio', () => {
  test('find their calls, in whatever order they come', async () => {
    const { call, dropped } = open();
    const ids: number[] = [];
    const calls = Array.from({ length: 200 }, () => {
      const answer = call('hold', { count: 200 });
      ids.push(nextId);
      return answer;
    });
    expect(await Promise.all(calls)).toEqual(ids.map((id) => ({ for: id })));
    expect(dropped).toEqual([]);
  });

  test.each(['naïve 日本語 🎉', 'a\u2028b\u2029c\u0085d'])(
    'keep %j though it is cut within characters',
    async (text) => {
      expect(await open().call('split', { text })).toEqual({ text });
    },
  );

  test('may have CRLF ends, blank lines, padding and a byte order mark', async () => {
    const { call, dropped } = open();
    expect(await call('padded')).toEqual({});
    expect(await call('mark')).toEqual({});
    expect(dropped).toEqual([]);
  });

  test('may be a line of 10 MB', async () => {
    expect(await open().call('big', { bytes: 10_485_760 })).toHaveLength(10_485_760);
  });

  test('come though 1.5 MB of stderr come first', async () => {
    const upstream = open();
    expect(await upstream.call('flood', { bytes: 1_500_000 })).toEqual({});
    expect(upstream.stderrBytes).toBeGreaterThanOrEqual(1_500_000);
  });

  test('are told from noise, strays and duplicates', async () => {
    const { call, dropped, closed } = open();
    expect(await call('noise')).toBe('first');
    const id = nextId;
    expect(await call('echo', { still: 'there' })).toEqual({ still: 'there' });
    expect(dropped).toEqual([
      'noise: Listening on stdio',
      'noise: {"level":"info"}',
      'noise: null',
      'noise: [1]',
      'noise: {"jsonrpc":"2.0"}',
      'noise: {"jsonrpc":"2.0","method":"\xff"}',
      `stray: {"jsonrpc":"2.0","id":${id + 1000},"result":{}}`,
      'stray: {"jsonrpc":"2.0","id":null,"error":{}}',
      `stray: {"jsonrpc":"2.0","id":${id},"result":"second"}`,
    ]);
    expect(closed).toEqual([]);
  });

  test('that share a line with a torn one are told from it', async () => {
    const { call, dropped, messages } = open();
    void call('silent').catch(() => undefined);
    expect(await call('glued')).toBe('whole');
    expect(messages).toEqual(['{"jsonrpc":"2.0","method":"notifications/x"}']);
    expect(dropped).toEqual([`noise: {"jsonrpc":"2.0","id":${nextId - 1},"result":{"text":"torn`]);
  });

  test('of a cancelled call are strays', async () => {
    const { channel, call, dropped } = open();
    const id = ++nextId;
    const told: unknown[] = [];
    channel.send(
      outgoing(id, 'echo'),
      exchange(
        (result) => told.push(result),
        (error) => told.push(error),
      ),
    );
    channel.cancel(id);
    await call('echo');
    expect(told).toEqual([]);
    expect(dropped).toEqual([`stray: {"jsonrpc":"2.0","id":${id},"result":{}}`]);
  });
});

test('requests and notifications of the server are handed on as they are', async () => {
  const { call, messages } = open();
  await call('notify');
  expect(messages).toEqual([
    '{"jsonrpc":"2.0","method":"notifications/made/up"}',
    '{"jsonrpc":"2.0","id":"q1","method":"roots/list"}',
  ]);
});

test('a post is written without anybody waiting for an answer', async () => {
  const { channel, call, dropped } = open();
  await channel.post(Buffer.from('{"jsonrpc":"2.0","id":77,"method":"echo","params":{"posted":true}}'));
  await call('echo');
  expect(dropped).toEqual(['stray: {"jsonrpc":"2.0","id":77,"result":{"posted":true}}']);
});

describe('limits', () => {
  const limits = { lineBytesMax: 100_000, queueBytesMax: 200_000, exchangesMax: 3 };

  test('a line that is too long fails its call only', async () => {
    const { call, dropped } = open(undefined, { limits });
    const other = call('hold', { count: 2 });
    const error = await failureOf(call('big', { bytes: 100_000 }));
    expect(error).toBeInstanceOf(ChannelError);
    expect(error).toMatchObject({
      reason: 'too-big',
      sent: true,
      message: 'its answer is a line of more than 100000 bytes (limits.result)',
    });
    expect(dropped).toHaveLength(1);
    expect(await call('big', { bytes: 99_000 })).toHaveLength(99_000);
    await call('hold', { count: 2 });
    await other;
  });

  test('an id inside the result of a line that is too long is not taken for its own', async () => {
    const { call, dropped } = open(undefined, { limits });
    const other = call('hold', { count: 2 });
    call('late', { other: nextId, bytes: 100_000 }).catch(() => {});
    await call('hold', { count: 2 });
    await other;
    expect(dropped).toHaveLength(1);
  });

  test('too many open calls are refused, with nothing sent, and not before send returns', async () => {
    const { channel, call, closed } = open(undefined, { limits });
    const held = [1, 2, 3].map(() => failureOf(call('silent')));
    let failed: Error | undefined;
    const refused = new Promise<void>((resolve) => {
      channel.send(
        outgoing(++nextId, 'throw'),
        exchange(
          () => resolve(),
          (error) => {
            failed = error;
            resolve();
          },
        ),
      );
    });
    expect(failed).toBeUndefined();
    await refused;
    expect(failed).toBeInstanceOf(RpcError);
    expect(failed).toMatchObject({ code: own.overLimit, message: 'server `x`: 3 calls are open already' });
    channel.cancel(nextId - 1);
    expect(await call('echo', { again: true })).toEqual({ again: true });
    expect(closed).toEqual([]);
    await channel.close();
    await held[0];
  });

  test('more bytes than may wait are refused', async () => {
    const { channel, call, dropped } = open(undefined, { limits });
    const text = 'x'.repeat(150_000);
    const first = failureOf(call('silent', { text }));
    expect(await failureOf(call('silent', { text }))).toMatchObject({
      code: own.overLimit,
      message: 'server `x`: more than 200000 bytes would wait for it to read them',
    });
    await channel.post(Buffer.from(`"${'x'.repeat(250_000)}"`));
    expect(dropped).toHaveLength(1);
    expect(dropped[0]).toMatch(/^unsent: /);
    await channel.close();
    expect(await first).toMatchObject({ reason: 'closed' });
  });
});

describe('the end of the child', () => {
  test('fails every open call, then the channel, with the code and the last line on stderr, masked', async () => {
    const { call, closed } = open(undefined, { mask: (text) => text.replace('s3cret', '***') });
    let closedBefore = 0;
    const open1 = call('silent').catch((error: unknown) => {
      closedBefore = closed.length;
      return error;
    });
    const error = await failureOf(
      call('exit', { code: 3, words: 'starting\nfatal: token s3cret expired\n' }),
    );
    expect(error).toBeInstanceOf(ChannelError);
    expect(error).toMatchObject({
      reason: 'lost',
      sent: true,
      message: 'it exited with code 3; its last line on stderr: fatal: token *** expired',
    });
    expect(await open1).toBe(error);
    expect(closed).toEqual([error]);
    expect(closedBefore).toBeLessThanOrEqual(1);
    expect(await failureOf(call('echo'))).toMatchObject({ reason: 'lost', sent: false, cause: error });
  });

  test('by an exception names the exception', async () => {
    const error = await failureOf(open().call('throw'));
    expect(error).toMatchObject({
      message: 'it exited with code 1; its last line on stderr: TypeError: the disk is full',
    });
  });

  test('by a signal names the signal', async () => {
    expect(await failureOf(open().call('kill'))).toMatchObject({
      message: 'it was ended by SIGKILL',
    });
  });

  test('does not lose an answer that was written before it', async () => {
    const { call } = open();
    expect(await call('answerThenExit', { bytes: 3_000_000 })).toHaveLength(3_000_000);
  });

  test('is what a closed input comes to: calls fail soon, and the process is ended', async () => {
    const { call, closed } = open();
    await call('closeInput');
    const text = 'x'.repeat(100_000);
    const calls: Promise<unknown>[] = [];
    // The kernel takes what nobody reads until the other end is closed.
    const isRefused = async (): Promise<boolean> => {
      calls.push(failureOf(call('echo', { text })));
      const last = await Promise.race([calls.at(-1), new Promise((resolve) => setTimeout(resolve, 20))]);
      return last instanceof ChannelError && !last.sent;
    };
    await expect.poll(isRefused, { interval: 5 }).toBe(true);
    // Those that it still read are answered.
    const failures = (await Promise.all(calls)).filter((outcome) => outcome instanceof ChannelError);
    const message = 'it was given up: it closed its standard input';
    expect(failures[0]).toMatchObject({ reason: 'lost', sent: true, message });
    for (const failure of failures) expect(failure).toMatchObject({ reason: 'lost', message });
    expect(closed).toEqual([failures[0]]);
  });

  test('before it has begun fails what was sent meanwhile, as unsent', async () => {
    const { channel, call, closed } = open([], { command: 'no-such-program' });
    await channel.post(Buffer.from('{}'));
    const message = 'it could not be started: program `no-such-program` not found on PATH';
    const first = failureOf(call('echo'));
    await new Promise((resolve) => setImmediate(resolve));
    const second = failureOf(call('echo'));
    expect(closed).toEqual([]);
    expect(await first).toMatchObject({ reason: 'unreachable', sent: false, message });
    expect(await second).toMatchObject({ reason: 'unreachable', sent: false, message });
    expect(closed).toHaveLength(1);
    expect(closed[0]).toMatchObject({ reason: 'unreachable', sent: false, message });
    expect(await failureOf(call('echo'))).toMatchObject({ reason: 'unreachable', sent: false, message });
  });
});

describe('closing', () => {
  test('fails open calls at once, tells no end, and may be done twice', async () => {
    const { channel, call, closed } = open();
    await call('echo');
    const held = failureOf(call('silent'));
    const closing = Promise.all([channel.close(), channel.close()]);
    expect(await held).toMatchObject({
      reason: 'closed',
      sent: true,
      message: 'it was stopped',
    });
    await closing;
    await channel.close();
    expect(closed).toEqual([]);
    expect(await failureOf(call('echo'))).toMatchObject({ reason: 'closed', sent: false });
  });

  test('ends what a launcher has started', async () => {
    const { channel, dropped } = open([script('launcher.mjs'), 'stay', 'group', 'detached', 'unmarked']);
    await expect.poll(() => dropped.length).toBe(1);
    const pids = Object.values(
      JSON.parse(dropped[0]?.slice('noise: '.length) ?? '') as Record<string, number>,
    );
    const living = async (): Promise<number> =>
      (await readProcesses()).filter((entry) => pids.includes(entry.pid) && entry.alive).length;
    expect(await living()).toBe(3);
    await channel.close();
    expect(await living()).toBe(0);
  });
});
