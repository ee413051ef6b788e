import { existsSync, statSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { startGateway } from '../support/gateway.ts';
import { call, callTool, openCall, resultOf, textOf } from '../support/modern-client.ts';
import { type Rotating, startRotating } from '../support/rotating.ts';
import { childScript, type ScriptedChild } from '../support/scripted.ts';
import { type Era, startUpstream, type Upstream } from '../support/upstream.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function childOf(era: Era = 'modern'): Promise<Upstream> {
  const upstream = await startUpstream({ era, transport: 'stdio', name: 'up' });
  endings.push(() => upstream.stop());
  return upstream;
}

function scriptOf(code: string): ScriptedChild {
  const child = childScript(code);
  endings.push(() => child.stop());
  return child;
}

/** Two gateways that share one owner of the server `up`. */
async function twoOf(
  server: object,
  more: object = {},
): Promise<Rotating & { readonly urls: [string, string] }> {
  const rotating = await startRotating({ servers: { up: server }, ...more }, 2, true);
  endings.push(() => rotating.stop());
  const [a, b] = rotating.gateways;
  if (a === undefined || b === undefined) throw new Error('there are not two gateways');
  return { ...rotating, urls: [a.url, b.url] };
}

/** The processes that were started, oldest first. */
const pidsOf = (upstream: Upstream): readonly number[] =>
  upstream.seen().flatMap(({ event, pid }) => (event === 'start' && pid !== undefined ? [pid] : []));

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const modern = `on['server/discover'] = ({ reply }) => reply(discovered);
on['tools/list'] = ({ reply }) => reply({ tools: ['x'].map((name) => ({ name, inputSchema: { type: 'object' } })) });`;

describe.each(['modern', 'legacy'] as const)('a %s child that two processes use', (era) => {
  test('runs once', async () => {
    const upstream = await childOf(era);
    const { urls } = await twoOf(upstream.server);
    for (const url of urls)
      expect(textOf(await callTool(url, 'up__echo', { of: url }))).toContain(new URL(url).port);
    expect(pidsOf(upstream)).toHaveLength(1);
  });

  test('tells the clients of both that a list has changed', async () => {
    const upstream = await childOf(era);
    const { urls } = await twoOf(upstream.server);
    const streams = await Promise.all(
      urls.map(async (url) => {
        await call(url, 'tools/list');
        const notifications = { toolsListChanged: true };
        const stream = await openCall(url, 'subscriptions/listen', { notifications });
        endings.push(() => stream.close());
        await stream.next();
        return stream;
      }),
    );
    await callTool(urls[0], 'up__announce', { what: 'tools', add: 'extra' });
    for (const stream of streams)
      expect((await stream.next()).method).toBe('notifications/tools/list_changed');
    for (const url of urls)
      await expect
        .poll(async () => JSON.stringify(resultOf(await call(url, 'tools/list'))['tools']))
        .toContain('up__extra');
  });

  test('tells of a resource only those that watch it', async () => {
    const upstream = await childOf(era);
    const { urls } = await twoOf(upstream.server);
    const uri = 'raw://up/one';
    for (const url of urls) await call(url, 'resources/list');
    const notifications = { resourceSubscriptions: [uri] };
    const stream = await openCall(urls[0], 'subscriptions/listen', { notifications });
    endings.push(() => stream.close());
    await stream.next();
    const told = async () => {
      await callTool(urls[1], 'up__announce', { what: 'resource', uri });
      return (await stream.next()).params?.['uri'];
    };
    expect(await told()).toBe(uri);
    // A child that was killed is watched again, and may have changed meanwhile.
    process.kill(pidsOf(upstream).at(-1) ?? 0, 'SIGKILL');
    expect((await stream.next()).params?.['uri']).toBe(uri);
    expect(await told()).toBe(uri);
  });

  test('that is killed in the middle of calls fails them as it fails them in one process, and is there again', async () => {
    const upstream = await childOf(era);
    const { urls } = await twoOf(upstream.server);
    const slow = urls.map((url) => callTool(url, 'up__slow', { ms: 60_000 }));
    await expect.poll(() => upstream.seen().filter(({ method }) => method === 'tools/call')).toHaveLength(2);
    process.kill(pidsOf(upstream)[0] ?? 0, 'SIGKILL');
    for (const { response } of await Promise.all(slow))
      expect(response?.error).toEqual({
        code: 5021,
        message:
          'server `up` went away during the call: it was ended by SIGKILL; the call may or may not have run',
      });
    for (const url of urls) expect((await callTool(url, 'up__echo', {})).response?.error).toBeUndefined();
    expect(pidsOf(upstream)).toHaveLength(2);
  });

  test('hears at once that a client has gone, and nothing else is cancelled', async () => {
    const upstream = await childOf(era);
    const { urls } = await twoOf(upstream.server);
    const params = { name: 'up__progress', arguments: { steps: 2_000 } };
    const gone = await openCall(urls[0], 'tools/call', params, { meta: { progressToken: 1 } });
    const other = callTool(urls[1], 'up__slow', { ms: 700 });
    await gone.next();
    gone.close();
    await expect.poll(() => upstream.seen().filter(({ event }) => event === 'cancelled')).toHaveLength(1);
    expect(textOf(await other)).toBe('Slept 700 ms');
  });

  test('asks through one process and is answered through the other', async () => {
    const upstream = await childOf(era);
    const { urls } = await twoOf(upstream.server);
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } };
    const params = { name: 'up__ask', arguments: { kind: 'elicitation', text: 'Which?' } };
    const asked = resultOf(await call(urls[0], 'tools/call', params, { meta }));
    expect(asked['resultType']).toBe('input_required');
    const [key = ''] = Object.keys(asked['inputRequests'] as object);
    const inputResponses = { [key]: { action: 'accept', content: { answer: 'that' } } };
    const retry = { ...params, inputResponses, requestState: asked['requestState'] };
    expect(textOf(await call(urls[1], 'tools/call', retry, { meta }))).toContain('that');
    const again = await call(urls[1], 'tools/call', { ...retry, arguments: { kind: 'roots' } }, { meta });
    expect(again.response?.error?.code).toBe(-32602);
  });

  test('takes a request of almost 8 MiB and gives an answer of 60 MiB, and short calls do not wait behind them', async () => {
    const upstream = await childOf(era);
    const { urls } = await twoOf(upstream.server);
    const text = 'y'.repeat(7.9 * 1024 * 1024);
    const big = callTool(urls[0], 'up__big', { bytes: 60 * 1024 * 1024 });
    const long = callTool(urls[1], 'up__echo', { text });
    for (let i = 0; i < 20; i++) textOf(await callTool(urls[i % 2] ?? '', 'up__echo', { i }));
    expect(textOf(await long)).toHaveLength(JSON.stringify({ text }).length);
    expect(textOf(await big)).toHaveLength(60 * 1024 * 1024);
  }, 60_000);
});

describe('a child of another process', () => {
  test('that never comes up is told as in one process, with the time of the next try that its owner makes', async () => {
    const child = scriptOf("console.error('no licence'); process.exit(3);");
    const { urls } = await twoOf({ ...child.server, restart: { initial: '60s', max: '60s' } });
    const told = async (url: string) => (await call(url, 'vendor/thing')).response?.error;
    const message = expect.stringMatching(
      /^server `up` is down: it exited with code 3; its last line on stderr: no licence \(next try in [3-6]\d s\); nothing was sent$/,
    );
    for (const url of urls) await expect.poll(() => told(url)).toEqual({ code: 5030, message });
    const starts = child.starts();
    for (const url of urls) await told(url);
    expect((await call(urls[0], 'tools/list')).raw.toString('utf8')).toContain('it is down');
    expect(child.starts()).toBe(starts);
  }, 30_000);

  test('has one bound of concurrency for all, and one queue', async () => {
    const upstream = await childOf();
    const concurrency = { max: 1, queue: 1 };
    const { urls } = await twoOf({ ...upstream.server, concurrency });
    const first = callTool(urls[0], 'up__slow', { ms: 4_000 });
    await expect.poll(() => upstream.seen().filter(({ method }) => method === 'tools/call')).toHaveLength(1);
    const second = callTool(urls[1], 'up__slow', { ms: 1 });
    let refused: Awaited<typeof second> | undefined;
    await expect
      .poll(async () => {
        refused ??= await callTool(urls[0], 'up__slow', { ms: 2 });
        return refused.response?.error?.code;
      })
      .toBe(4290);
    expect(refused?.response?.error?.message).toMatch(/^server `up` has 1 calls in flight/);
    expect(textOf(await first)).toBe('Slept 4000 ms');
    expect(textOf(await second)).toBe('Slept 1 ms');
  });

  test('is called again after a fall where that does no harm, by who was called', async () => {
    const child = scriptOf(`${modern}
on['tools/list'] = ({ reply }) => reply({ tools: [{ name: 'x', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }] });
import { existsSync, writeFileSync } from 'node:fs';
on['tools/call'] = ({ reply }) => {
  if (existsSync(starts + '.died')) return reply({ content: [{ type: 'text', text: 'the second time' }] });
  writeFileSync(starts + '.died', '');
  process.exit(9);
};`);
    const { urls } = await twoOf({ ...child.server, retry: 'idempotent' });
    expect(textOf(await callTool(urls[1], 'up__x'))).toBe('the second time');
    expect(child.starts()).toBe(2);
  });

  test('is asked for a list once, where several processes want it at the same time', async () => {
    const child = scriptOf(`${modern}
const lists_ = on['tools/list'];
on['tools/list'] = async (asked) => { await sleep(1_000); lists_(asked); };`);
    const { urls } = await twoOf(child.server);
    const asked = () => child.methods().filter((method) => method === 'tools/list').length;
    const before = asked();
    for (const answer of await Promise.all(urls.map((url) => call(url, 'tools/list'))))
      expect(JSON.stringify(resultOf(answer)['tools'])).toContain('up__x');
    expect(asked() - before).toBe(1);
  });

  test('is at its deadline for all of its calls at the owner, once', async () => {
    const upstream = await childOf();
    const { urls } = await twoOf({ ...upstream.server, timeout: '1s' });
    const { response } = await callTool(urls[0], 'up__slow', { ms: 60_000 });
    expect(response?.error?.code).toBe(5040);
    expect(response?.error?.message).toContain('did not answer within 1000 ms (servers.up.timeout)');
    await expect.poll(() => upstream.seen().filter(({ event }) => event === 'cancelled')).toHaveLength(1);
  });

  test('sleeps when nobody calls it through any process, and wakes for either', async () => {
    const upstream = await childOf();
    const { urls, gateways } = await twoOf({ ...upstream.server, idleTimeout: '2s' });
    const states = () => gateways.map(({ app }) => app.health()[0]?.state);
    await expect.poll(states).toEqual(['asleep', 'asleep']);
    expect(resultOf(await call(urls[1], 'tools/list'))['tools']).not.toEqual([]);
    expect(pidsOf(upstream)).toHaveLength(1);
    textOf(await callTool(urls[1], 'up__echo'));
    expect(pidsOf(upstream)).toHaveLength(2);
    await expect.poll(states).toEqual(['up', 'up']);
    textOf(await callTool(urls[0], 'up__echo'));
    expect(pidsOf(upstream)).toHaveLength(2);
  });

  test('of one caller ends when the last process that used it for the caller ends that', async () => {
    const upstream = await childOf('legacy');
    const keys = { ann: hashOfKey('key-of-ann'), bob: hashOfKey('key-of-bob') };
    const { urls, gateways } = await twoOf({ ...upstream.server, isolation: 'caller' }, { keys });
    const as = (name: string) => ({ headers: { authorization: `Bearer key-of-${name}` } });
    for (const url of urls) textOf(await callTool(url, 'up__echo', {}, as('ann')));
    textOf(await callTool(urls[0], 'up__echo', {}, as('bob')));
    const [ann = 0, bob = 0, ...others] = pidsOf(upstream);
    expect(others).toEqual([]);
    await gateways[1]?.stop();
    textOf(await callTool(urls[0], 'up__echo', {}, as('ann')));
    expect([ann, bob].map(isAlive)).toEqual([true, true]);
    expect(pidsOf(upstream)).toHaveLength(2);
    const owning = gateways[0]?.owning;
    const { app } = gateways[0] ?? {};
    await app?.stop(0);
    await expect.poll(() => [ann, bob].filter(isAlive)).toEqual([]);
    expect(owning?.core.catalogs.shared.member('up')?.instances?.all()).toEqual([]);
  });

  test('has no room for more callers than limits.instances says, through whichever process', async () => {
    const upstream = await childOf('legacy');
    const keys = { ann: hashOfKey('key-of-ann'), bob: hashOfKey('key-of-bob') };
    const { urls } = await twoOf(
      { ...upstream.server, isolation: 'caller' },
      { keys, limits: { instances: 1 } },
    );
    const as = (name: string) => ({ headers: { authorization: `Bearer key-of-${name}` } });
    textOf(await callTool(urls[0], 'up__echo', {}, as('ann')));
    const { response } = await callTool(urls[1], 'up__echo', {}, as('bob'));
    expect(JSON.stringify(response?.error)).toContain('4290');
    expect(response?.error?.message).toContain('limits.instances');
  });

  test('carries thousands of calls at once, each of which gets its own answer', async () => {
    const child = scriptOf(`${modern}
const waiting = [];
on['tools/call'] = ({ params, reply }) => {
  waiting.push(() => reply({ content: [{ type: 'text', text: params.arguments.n }] }));
  if (waiting.length === 3000) for (const answer of waiting.reverse()) answer();
};`);
    const { urls } = await twoOf({ ...child.server, concurrency: { max: 5_000 } });
    await call(urls[0], 'tools/list');
    const answers: Promise<string>[] = [];
    const asked = () => child.methods().filter((method) => method === 'tools/call').length;
    // No more connections at once than the kernel keeps for who is slow to take them.
    while (answers.length < 3_000) {
      for (let at = 0; at < 250; at++) {
        const n = answers.length;
        answers.push(callTool(urls[n % 2] ?? '', 'up__x', { n: `number ${n}` }).then(textOf));
      }
      await expect.poll(asked).toBe(answers.length);
    }
    const texts = await Promise.all(answers);
    expect(texts.every((text, n) => text === `number ${n}`)).toBe(true);
  }, 60_000);
});

describe('the socket of the owner', () => {
  test('is for this user alone, and goes with the owner', async () => {
    const upstream = await childOf();
    const gateway = await startGateway({ servers: { up: upstream.server } }, { owned: true });
    const socket = gateway.owning?.address.socket ?? '';
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    await gateway.stop();
    expect(existsSync(socket)).toBe(false);
  });

  test('where it breaks in the middle of calls fails them, and is connected to again', async () => {
    const upstream = await childOf();
    const gateway = await startGateway({ servers: { up: upstream.server } }, { owned: true });
    endings.push(() => gateway.stop());
    const slow = callTool(gateway.url, 'up__slow', { ms: 60_000 });
    await expect.poll(() => upstream.seen().filter(({ method }) => method === 'tools/call')).toHaveLength(1);
    gateway.owning?.cut();
    expect((await slow).response?.error).toEqual({
      code: 5021,
      message:
        'server `up` went away during the call: the connection to its owner broke; the call may or may not have run',
    });
    // Nobody waits for it any more.
    await expect.poll(() => upstream.seen().filter(({ event }) => event === 'cancelled')).toHaveLength(1);
    expect((await callTool(gateway.url, 'up__echo')).response?.error).toBeUndefined();
    expect(pidsOf(upstream)).toHaveLength(1);
  });
});
