import { afterEach, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { callTool } from '../support/modern-client.ts';
import { childScript, modernScript, type Script, startScript, tool } from '../support/scripted.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

async function gatewayOf(servers: object): Promise<Gateway> {
  const gateway = await startGateway({ servers });
  endings.push(() => gateway.stop());
  return gateway;
}

async function serve(script: Script) {
  const server = await startScript(modernScript(script));
  endings.push(() => server.stop());
  return server;
}

const tools = (...names: string[]) => ({ 'tools/list': () => ({ tools: names.map((name) => tool(name)) }) });

const text = (words: string) => ({ content: [{ type: 'text', text: words }] });

const errorOf = async (gateway: Gateway, name: string) =>
  (await callTool(gateway.url, name)).response?.error as
    | { readonly code: number; readonly message: string; readonly data?: unknown }
    | undefined;

/** The code of the error that a call ended with, 0 for a result. */
const codeOf = async (gateway: Gateway, name: string): Promise<number> =>
  (await errorOf(gateway, name))?.code ?? 0;

async function metric(gateway: Gateway, line: string): Promise<string | undefined> {
  const exposition = await (await fetch(`${gateway.admin}/metrics`)).text();
  return exposition.split('\n').find((one) => one.startsWith(line));
}

const readiness = async (gateway: Gateway) => (await fetch(`${gateway.admin}/readyz`)).json();

describe('calls beyond what an upstream may have at once', () => {
  test('wait for a place, or are refused with a code of their own, and cost other upstreams nothing', async () => {
    const open: (() => void)[] = [];
    const slow = await serve({
      ...tools('x'),
      'tools/call': () => new Promise((resolve) => open.push(() => resolve(text('slow')))),
    });
    const quick = await serve({ ...tools('x'), 'tools/call': () => text('quick') });
    const gateway = await gatewayOf({
      slow: { ...slow.server, concurrency: { max: 2, queue: 1 } },
      quick: quick.server,
    });
    const calls = [1, 2, 3].map(() => codeOf(gateway, 'slow__x'));
    await expect.poll(() => metric(gateway, 'mcpyard_upstream_queued')).toContain('} 1');
    await expect.poll(() => open.length).toBe(2);
    expect(await errorOf(gateway, 'slow__x')).toMatchObject({
      code: 4290,
      message: expect.stringContaining('server `slow`'),
    });
    expect(await codeOf(gateway, 'quick__x')).toBe(0);
    open.shift()?.();
    await expect.poll(() => open.length).toBe(2);
    for (const end of open.splice(0)) end();
    expect(await Promise.all(calls)).toEqual([0, 0, 0]);
    expect(await metric(gateway, 'mcpyard_limits_hit_total{limit="upstreamQueue"}')).toMatch(/ 1$/);
    expect(await metric(gateway, 'mcpyard_upstream_queue_seconds_count{upstream="slow"}')).toMatch(/ 1$/);
    expect(await metric(gateway, 'mcpyard_upstream_queued{upstream="slow"}')).toMatch(/ 0$/);
  });

  test('go on at another process where the one before ended meanwhile', async () => {
    const child = childScript(`
      on['server/discover'] = ({ reply }) => reply(discovered);
      on['tools/list'] = ({ reply }) => reply({ tools: [{ name: 'die', inputSchema: { type: 'object' } }, { name: 'x', inputSchema: { type: 'object' } }] });
      on['tools/call'] = async ({ params, reply }) => { await sleep(100); if (params.name === 'die') process.exit(1); reply({ content: [] }); };
    `);
    endings.push(() => child.stop());
    const gateway = await gatewayOf({ one: { ...child.server, concurrency: { max: 1 } } });
    const codes = await Promise.all(['die', 'x'].map((name) => codeOf(gateway, `one__${name}`)));
    expect(codes).toEqual([5021, 0]);
  });
});

describe('an upstream that fails call after call', () => {
  const breaker = { failures: 2, cooldown: '2s' };

  test('is not asked for a while, which is said; then one call sees that it is back', async () => {
    let broken = true;
    const server = await serve({
      ...tools('x'),
      'tools/call': ({ response }) => {
        if (!broken) return text('ok');
        response.writeHead(503, { 'content-type': 'text/plain' }).end('no');
        return undefined;
      },
    });
    const gateway = await gatewayOf({ one: { ...server.server, breaker } });
    const asked = () => server.methods().filter((method) => method === 'tools/call').length;
    expect([await codeOf(gateway, 'one__x'), await codeOf(gateway, 'one__x')]).toEqual([5020, 5020]);
    expect(await errorOf(gateway, 'one__x')).toEqual({
      code: 5032,
      message: expect.stringMatching(
        /^server `one` failed 2 times in a row and is tried again in [12] s; nothing was sent$/,
      ),
      data: { retryAfter: expect.toBeOneOf([1, 2]) },
    });
    expect(asked()).toBe(2);
    expect(await metric(gateway, 'mcpyard_breaker_open')).toBe('mcpyard_breaker_open{upstream="one"} 1');
    expect(await readiness(gateway)).toMatchObject({ upstreams: { one: { state: 'up', breaker: 'open' } } });
    expect(gateway.lines.filter(({ msg }) => String(msg).includes('2 times in a row'))).toHaveLength(1);
    const code = () => codeOf(gateway, 'one__x');
    await expect.poll(code).toBe(5020);
    expect(asked()).toBe(3);
    expect(await codeOf(gateway, 'one__x')).toBe(5032);
    broken = false;
    await expect.poll(code).toBe(0);
    expect([await code(), asked()]).toEqual([0, 5]);
    expect(await metric(gateway, 'mcpyard_breaker_open')).toBe('mcpyard_breaker_open{upstream="one"} 0');
  });

  test('is told by calls that take too long, never by what its tools say', async () => {
    const child = childScript(`
      on['server/discover'] = ({ reply }) => reply(discovered);
      on['tools/list'] = ({ reply }) => reply({ tools: [{ name: 'hang', inputSchema: { type: 'object' } }, { name: 'bad', inputSchema: { type: 'object' } }] });
      on['tools/call'] = ({ params, reply, fail }) => { if (params.name === 'bad') fail(-32000, 'no'); };
    `);
    endings.push(() => child.stop());
    const gateway = await gatewayOf({
      one: { ...child.server, timeout: '1s', breaker: { failures: 2, cooldown: '1m' } },
    });
    for (let i = 0; i < 5; i++) expect(await codeOf(gateway, 'one__bad')).toBe(-32000);
    expect([await codeOf(gateway, 'one__hang'), await codeOf(gateway, 'one__hang')]).toEqual([5040, 5040]);
    expect(await codeOf(gateway, 'one__bad')).toBe(5032);
  });

  test('is asked again at once where it has been started anew', async () => {
    const child = childScript(`
      on['server/discover'] = ({ reply }) => reply(discovered);
      on['tools/list'] = ({ reply }) => reply({ tools: ['die', 'x'].map((name) => ({ name, inputSchema: { type: 'object' } })) });
      on['tools/call'] = async ({ params, reply }) => { if (params.name === 'die') setTimeout(() => process.exit(1), 500); else reply({ content: [] }); };
    `);
    endings.push(() => child.stop());
    const gateway = await gatewayOf({ one: { ...child.server, breaker: { failures: 2, cooldown: '1m' } } });
    const codes = await Promise.all([1, 2, 3, 4].map(() => codeOf(gateway, 'one__die')));
    expect(codes).toEqual([5021, 5021, 5021, 5021]);
    await expect.poll(() => codeOf(gateway, 'one__x')).toBe(0);
  });
});
