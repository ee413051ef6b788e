import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import {
  childScript,
  discovered,
  legacyScript,
  modernScript,
  type Script,
  startScript,
} from '../support/scripted.ts';
import { callOf, send } from './calls.ts';
import { closeAll, openOne } from './opened.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  await closeAll();
  for (const ending of endings.splice(0)) await ending();
});

function child(code: string) {
  const script = childScript(code);
  endings.push(() => script.stop());
  return script;
}

async function serve(script: Script) {
  const server = await startScript(script);
  endings.push(() => server.stop());
  return server;
}

const probe = { probe: { interval: '50ms', timeout: '200ms' } };
/** Of what answers, however busy the machine is. */
const patient = { probe: { interval: '50ms', timeout: '20s' } };
const modern = "on['server/discover'] = ({ reply }) => reply(discovered);";
const legacy = 'on.initialize = ({ reply }) => reply(initialized);';

describe('an upstream that nobody calls', () => {
  test.each([
    [
      'modern',
      `let asked = 0; on['server/discover'] = ({ reply }) => { if (asked++ === 0) reply(discovered); };`,
    ],
    ['legacy', `${legacy} on.ping = () => {};`],
  ])('and that hangs is found and started again: a %s child', async (_, code) => {
    const { server, starts } = child(code);
    const { told, settled } = openOne(server, probe);
    await settled();
    await expect.poll(starts).toBeGreaterThan(1);
    expect(told).toContainEqual(expect.stringMatching(/^lost: it does not answer/));
  });

  test.each([
    ['refuses to be asked', '20s', legacy],
    ['misses one of two', '1s', `${legacy} let n = 0; on.ping = ({ reply }) => { if (n++ % 2) reply({}); };`],
  ])('and that %s is left alone', async (_, timeout, code) => {
    const { server, starts, methods } = child(code);
    const { upstream, settled } = openOne(server, { probe: { interval: '50ms', timeout } });
    const live = await settled();
    const pings = () => methods().filter((method) => method === 'ping').length;
    await expect.poll(pings).toBeGreaterThan(4);
    expect([starts(), upstream.live]).toEqual([1, live]);
  });

  test('and then has a call in flight is not asked, however long that takes', async () => {
    const { server, starts } = child(
      `${legacy} let open = false; let asked = 0; on.ping = ({ reply }) => { if (open) asked++; reply({}); };
      on['tools/call'] = async ({ reply }) => { open = true; await sleep(700); open = false; reply({ asked }); };`,
    );
    const { settled } = openOne(server, probe);
    const reply = await send(await settled(), callOf('x'));
    expect(JSON.parse(Buffer.concat([...reply.parts]).toString()).result.asked).toBe(0);
    expect(starts()).toBe(1);
  });

  test.each([
    ['modern', modernScript({})],
    ['legacy', legacyScript({ ping: () => ({}) })],
  ])('and that is gone is found before a call meets it: a %s server over HTTP', async (_, script) => {
    const server = await serve(script);
    const { upstream, told, settled } = openOne(server.server, patient);
    await settled();
    await server.stop();
    await expect.poll(() => upstream.live).toBeUndefined();
    expect(told.filter((line) => line.startsWith('lost'))).toHaveLength(1);
  });

  test('and that answers with an error status below 500 is left alone', async () => {
    let isStarted = false;
    const server = await serve(
      modernScript({
        'server/discover': ({ send: answer }) => {
          if (!isStarted) return discovered();
          answer('busy', 429);
          return undefined;
        },
      }),
    );
    const { upstream, settled } = openOne(server.server, patient);
    const live = await settled();
    isStarted = true;
    const asked = server.methods().length;
    await expect.poll(() => server.methods().length).toBeGreaterThan(asked + 4);
    expect(upstream.live).toBe(live);
  });
});

describe('an upstream with an idleTimeout', () => {
  const quick = { idleTimeout: '100ms' };

  test.each([
    ['modern', modern],
    ['legacy', legacy],
  ])('is stopped when nobody calls it, and started again by a call: a %s child', async (_, code) => {
    const { server, starts } = child(
      `${code} on['tools/call'] = ({ reply }) => reply({ pid: process.pid });`,
    );
    const { upstream, told, settled } = openOne({ ...server, ...quick });
    const reply = await send(await settled(), callOf('x'));
    const { pid } = JSON.parse(Buffer.concat([...reply.parts]).toString()).result;
    await expect.poll(() => upstream.state.kind).toBe('asleep');
    await expect.poll(() => isAlive(pid)).toBe(false);
    expect([starts(), upstream.profile?.dialect.era === undefined]).toEqual([1, false]);
    await send(await upstream.ready(0), callOf('x'));
    expect(starts()).toBe(2);
    expect(told.filter((line) => line === 'up' || line === 'asleep').slice(0, 3)).toEqual([
      'up',
      'asleep',
      'up',
    ]);
    expect(told.filter((line) => line.startsWith('lost') || line.startsWith('down'))).toEqual([]);
  });

  test('waits for all that is in flight', async () => {
    const { server, starts } = child(
      `${modern} on['tools/call'] = async ({ reply }) => { await sleep(700); reply({ content: [] }); };`,
    );
    const { upstream, settled } = openOne({ ...server, ...quick });
    await send(await settled(), callOf('x'));
    expect([upstream.state.kind, starts()]).toEqual(['up', 1]);
    await expect.poll(() => upstream.state.kind).toBe('asleep');
  });

  test('is kept while one of its resources is watched', async () => {
    const { server } = child(
      `on.initialize = ({ reply }) => reply({ ...initialized, capabilities: { resources: { subscribe: true } } }); on['resources/subscribe'] = on['resources/unsubscribe'] = ({ reply }) => reply({});`,
    );
    const { upstream, settled } = openOne({ ...server, ...quick });
    await settled();
    await upstream.resources.add('a:b');
    await sleep(400);
    expect(upstream.state.kind).toBe('up');
    upstream.resources.remove('a:b');
    await expect.poll(() => upstream.state.kind).toBe('asleep');
  });

  test('ends its session over HTTP, and has another one afterwards', async () => {
    const server = await serve(legacyScript({ DELETE: ({ response }) => response.writeHead(200).end() }));
    const { upstream, settled } = openOne({ ...server.server, ...quick });
    await settled();
    await expect.poll(() => upstream.state.kind).toBe('asleep');
    await upstream.ready(0);
    expect(server.methods().filter((method) => method === 'initialize')).toHaveLength(2);
  });
});

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe('a child that only ever ends', () => {
  test('is in a crash loop after five falls, and out of it when it stays up', async () => {
    const { server, starts } = child(
      `${modern} const { readFileSync } = await import('node:fs'); if (readFileSync(starts, 'utf8').length < 6) setTimeout(() => process.exit(3), 100);`,
    );
    const { upstream, told } = openOne({
      ...server,
      restart: { initial: '10ms', max: '20ms', stable: '700ms' },
    });
    await expect.poll(() => upstream.crashLoop).toBe(5);
    await expect.poll(() => told.includes('stable')).toBe(true);
    expect([upstream.crashLoop, starts()]).toEqual([undefined, 6]);
  });

  test('while it starts says why, and nothing of calls that may have run', async () => {
    const { server } = child(
      "on.initialize = () => { console.error('no licence'); process.exit(1); }; on['server/discover'] = ({ fail }) => fail(-32601, 'no');",
    );
    const { upstream, settled } = openOne(server);
    await expect(settled()).rejects.toThrow(/^it exited with code 1.*no licence$/);
    await expect.poll(() => upstream.state.kind).toBe('down');
    await expect(upstream.ready(0)).rejects.toThrow(
      /^server `up` is down: it exited with code 1; its last line on stderr: no licence \(next try in \d+ s\); nothing was sent$/,
    );
  });
});

test('a stop waits for a channel that is only being opened', async () => {
  const { server, starts } = child('');
  const { upstream } = openOne(server);
  const { state } = upstream;
  await upstream.stop();
  if (state.kind !== 'starting') throw new Error(state.kind);
  expect(await Promise.race([state.done.then(() => 'over'), sleep(0, 'under way')])).toBe('over');
  expect(starts()).toBeLessThanOrEqual(1);
});
