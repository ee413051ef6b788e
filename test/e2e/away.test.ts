import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { call, callTool, openCall, resultOf } from '../support/modern-client.ts';
import { ownPort } from '../support/port.ts';
import { childScript, legacyScript, modernScript, startScript, tool } from '../support/scripted.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

/** A server that can go away and come back with other tools. */
interface Fickle {
  readonly server: object;
  leave(): Promise<void>;
  comeBack(...tools: readonly string[]): Promise<void>;
}

type Era = 'modern' | 'legacy';

function child(era: Era): Promise<Fickle> {
  const folder = mkdtempSync(join(tmpdir(), 'fickle-'));
  endings.push(() => rmSync(folder, { recursive: true, force: true }));
  const [tools, pid] = [join(folder, 'tools'), join(folder, 'pid')];
  writeFileSync(tools, 'a');
  const handshake =
    era === 'modern'
      ? "on['server/discover'] = ({ reply }) => reply(discovered);"
      : 'on.initialize = ({ reply }) => reply(initialized);';
  const script = childScript(`
    const { readFileSync, writeFileSync } = await import('node:fs');
    const names = readFileSync(${JSON.stringify(tools)}, 'utf8').split(' ').filter((name) => name !== '');
    if (names.length === 0) process.exit(1);
    writeFileSync(${JSON.stringify(pid)}, String(process.pid));
    ${handshake}
    on['tools/list'] = ({ reply }) => reply({ tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) });
  `);
  endings.push(() => script.stop());
  return Promise.resolve({
    server: script.server,
    async leave() {
      writeFileSync(tools, '');
      process.kill(Number(readFileSync(pid, 'utf8')), 'SIGKILL');
    },
    async comeBack(...names) {
      writeFileSync(tools, names.join(' '));
    },
  });
}

async function overHttp(era: Era): Promise<Fickle> {
  let names: readonly string[] = ['a'];
  const withHandshake = era === 'modern' ? modernScript : legacyScript;
  const script = withHandshake({ 'tools/list': () => ({ tools: names.map((name) => tool(name)) }) });
  const port = await ownPort();
  let running = await startScript(script, port);
  endings.push(() => running.stop());
  return {
    server: running.server,
    leave: () => running.stop(),
    async comeBack(...tools) {
      names = tools;
      running = await startScript(script, port);
    },
  };
}

describe.each([
  ['a modern child', child, 'modern'],
  ['a legacy child', child, 'legacy'],
  ['a modern server over HTTP', overHttp, 'modern'],
  ['a legacy server over HTTP', overHttp, 'legacy'],
] as const)('%s', (_, start, era) => {
  test('that goes away is served as it was and said to be stale, and its return is announced', async () => {
    const fickle = await start(era);
    const steady = await startScript(modernScript({ 'tools/list': () => ({ tools: [tool('z')] }) }));
    endings.push(() => steady.stop());
    const gateway = await startGateway({
      probe: { interval: '50ms', timeout: '20s' },
      servers: {
        fickle: { ...fickle.server, restart: { initial: '20ms', max: '50ms' } },
        steady: steady.server,
      },
    });
    endings.push(() => gateway.stop());
    const names = async () => {
      const { tools, _meta } = resultOf(await call(gateway.url, 'tools/list', {})) as unknown as Listed;
      return [tools.map(({ name }) => name), _meta?.['dev.mcpyard/upstreams']] as const;
    };
    expect((await names())[0]).toEqual(['fickle__a', 'steady__z']);
    const listening = await openCall(gateway.url, 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
    });
    endings.push(() => listening.close());
    expect((await listening.next()).method).toBe('notifications/subscriptions/acknowledged');

    await fickle.leave();
    await expect
      .poll(() => readiness(gateway.admin))
      .toMatchObject({
        status: 'ok',
        upstreams: {
          fickle: { state: expect.stringMatching(/^(down|crash_loop)$/), error: expect.any(String) },
          steady: { state: 'up' },
        },
      });
    expect(await names()).toEqual([
      ['fickle__a', 'steady__z'],
      { fickle: { state: 'stale', reason: expect.any(String) } },
    ]);
    expect((await callTool(gateway.url, 'fickle__a')).response?.error?.code).toBe(5030);

    await fickle.comeBack('a', 'b');
    // Notices of the start may come first; whoever asks after each sees the return with the last.
    const returned = [['fickle__a', 'fickle__b', 'steady__z'], undefined];
    const isBack = async (): Promise<boolean> => isDeepStrictEqual(await names(), returned);
    do expect((await listening.next()).method).toBe('notifications/tools/list_changed');
    while (!(await isBack()));
  });
});

describe.each(['modern', 'legacy'] as const)('a %s child that sleeps', (era) => {
  test('keeps its tools listed as they were, and is woken by a call alone', async () => {
    const handshake =
      era === 'modern'
        ? "on['server/discover'] = ({ reply }) => reply(discovered);"
        : 'on.initialize = ({ reply }) => reply(initialized);';
    const script = childScript(`${handshake}
      on['tools/list'] = ({ reply }) => reply({ tools: [{ name: 'a', inputSchema: { type: 'object' } }] });
      on['tools/call'] = ({ reply }) => reply({ content: [] });`);
    endings.push(() => script.stop());
    const gateway = await startGateway({ servers: { one: { ...script.server, idleTimeout: '200ms' } } });
    endings.push(() => gateway.stop());
    const asleep = { upstreams: { one: { state: 'asleep', era } } };
    await expect.poll(() => readiness(gateway.admin)).toMatchObject(asleep);
    for (let i = 0; i < 3; i++) {
      const { tools, _meta } = resultOf(await call(gateway.url, 'tools/list', {})) as unknown as Listed;
      expect([tools.map(({ name }) => name), _meta?.['dev.mcpyard/upstreams']]).toEqual([
        ['one__a'],
        undefined,
      ]);
    }
    expect((await callTool(gateway.url, 'one__b')).response?.error?.code).toBe(-32602);
    expect(script.starts()).toBe(1);
    const answers = await Promise.all(Array.from({ length: 5 }, () => callTool(gateway.url, 'one__a')));
    expect(answers.map(({ response }) => response?.error)).toEqual(Array.from({ length: 5 }));
    expect(script.starts()).toBe(2);
    await expect.poll(() => readiness(gateway.admin)).toMatchObject(asleep);
  });
});

interface Listed {
  readonly tools: readonly { readonly name: string }[];
  readonly _meta?: Readonly<Record<string, unknown>>;
}

const readiness = async (admin: string): Promise<unknown> => (await fetch(`${admin}/readyz`)).json();
