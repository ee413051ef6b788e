import { once } from 'node:events';
import { connect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { isAlive } from '../cli/program.ts';
import { scrape } from '../support/figures.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { openSession } from '../support/legacy-session.ts';
import { call, callTool, openCall, resultOf, textOf } from '../support/modern-client.ts';
import { startPool } from '../support/pool.ts';
import { startUpstream, type Upstream, type UpstreamOptions } from '../support/upstream.ts';

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

async function child(name: string, options: UpstreamOptions = {}): Promise<Upstream> {
  const upstream = await startUpstream({ transport: 'stdio', name, ...options });
  endings.push(() => upstream.stop());
  return upstream;
}

async function gatewayOf(config: object): Promise<Gateway> {
  const gateway = await startGateway(config);
  endings.push(() => gateway.stop());
  return gateway;
}

const pids = (upstream: Upstream): number[] =>
  upstream.seen().flatMap(({ event, pid }) => (event === 'start' && pid !== undefined ? [pid] : []));

async function namesOf({ url }: Gateway): Promise<string[]> {
  const { tools } = resultOf(await call(url, 'tools/list')) as { tools: { name: string }[] };
  return tools.map(({ name }) => name);
}

/** How often an upstream was asked for a method. */
const asked = (upstream: Upstream, method: string): number =>
  upstream.seen().filter((one) => one.method === method).length;

const settled = ({ app }: Gateway): Promise<void> => app.settled();

describe('a reload', () => {
  test('restarts what has changed, starts what is new, ends what is gone, and keeps all else as it is', async () => {
    const [kept, changed, gone, added] = await Promise.all([
      child('kept'),
      child('changed'),
      child('gone'),
      child('added'),
    ]);
    const gateway = await gatewayOf({
      servers: { kept: kept.server, changed: changed.server, gone: gone.server },
    });
    await namesOf(gateway);
    const [keptPid, changedPid, gonePid] = [pids(kept)[0], pids(changed)[0], pids(gone)[0]];
    const lists = asked(kept, 'tools/list');
    const outcome = await gateway.reload({
      servers: {
        added: added.server,
        kept: kept.server,
        changed: { ...changed.server, env: { MORE: 'yes' } },
      },
    });
    expect(outcome.kind).toBe('taken');
    await settled(gateway);
    const names = await namesOf(gateway);
    expect([...new Set(names.map((name) => name.split('__')[0]))]).toEqual(['added', 'kept', 'changed']);
    expect(pids(kept)).toEqual([keptPid]);
    expect(pids(changed)).toHaveLength(2);
    await expect.poll(() => [changedPid ?? 0, gonePid ?? 0].filter(isAlive)).toEqual([]);
    expect([keptPid ?? 0, pids(changed)[1] ?? 0, pids(added)[0] ?? 0].filter(isAlive)).toHaveLength(3);
    expect(asked(kept, 'tools/list')).toBe(lists);
    expect(textOf(await callTool(gateway.url, 'kept__echo', { text: 'x' }))).toBe('{"text":"x"}');
    expect(gateway.app.health().map(({ name, state }) => `${name} ${state}`)).toEqual([
      'added up',
      'kept up',
      'changed up',
    ]);
    expect(gateway.lines.map(({ msg }) => msg)).toContain(
      'the new config is in force; servers: added added; restarted changed; removed gone; 1 kept',
    );
  });

  test('restarts nothing for what only names, access and times of calls depend on', async () => {
    const one = await child('one');
    const gateway = await gatewayOf({ servers: { one: one.server } });
    const before = pids(one);
    await gateway.reload({
      names: { separator: '.' },
      servers: {
        one: {
          ...one.server,
          prefix: 'uno',
          tools: { deny: ['slow'], rename: { echo: 'parrot' } },
          timeout: '150ms',
        },
      },
    });
    const names = await namesOf(gateway);
    expect(names).toContain('uno.parrot');
    expect(names).not.toContain('uno.slow');
    expect(names.filter((name) => name.startsWith('one'))).toEqual([]);
    expect((await callTool(gateway.url, 'one__echo')).response?.error?.code).toBe(-32602);
    const late = await callTool(gateway.url, 'uno.progress', { steps: 2, everyMs: 5_000 });
    expect(late.response?.error?.code).toBe(5040);
    expect(pids(one)).toEqual(before);
  });

  test('follows the order of the servers in lists', async () => {
    const [one, two] = await Promise.all([child('one'), child('two')]);
    const gateway = await gatewayOf({ servers: { one: one.server, two: two.server } });
    expect((await namesOf(gateway))[0]).toBe('one__echo');
    await gateway.reload({ servers: { two: two.server, one: one.server } });
    expect((await namesOf(gateway))[0]).toBe('two__echo');
    expect([pids(one).length, pids(two).length]).toEqual([1, 1]);
  });

  test('lets the calls of a server end that is taken away, or changed', async () => {
    const [gone, changed] = await Promise.all([child('gone'), child('changed')]);
    const gateway = await gatewayOf({ servers: { gone: gone.server, changed: changed.server } });
    const calls = ['gone', 'changed'].map((name) => callTool(gateway.url, `${name}__slow`, { ms: 1_500 }));
    await expect.poll(() => asked(gone, 'tools/call') + asked(changed, 'tools/call')).toBe(2);
    await gateway.reload({ servers: { changed: { ...changed.server, env: { MORE: 'yes' } } } });
    expect((await callTool(gateway.url, 'gone__echo')).response?.error?.code).toBe(-32602);
    expect(textOf(await callTool(gateway.url, 'changed__echo'))).toBe('{}');
    for (const answer of await Promise.all(calls)) expect(textOf(answer)).toBe('Slept 1500 ms');
    await expect.poll(() => [...pids(gone), pids(changed)[0] ?? 0].filter(isAlive)).toEqual([]);
    expect(isAlive(pids(changed)[1] ?? 0)).toBe(true);
  });

  test('lets a long answer of a server over HTTP go out that is taken away', async () => {
    const far = await startUpstream({ transport: 'http' });
    endings.push(() => far.stop());
    const gateway = await gatewayOf({ servers: { far: far.server } });
    const open = await openCall(gateway.url, 'tools/call', {
      name: 'far__big',
      arguments: { bytes: 30_000_000, chunked: true },
    });
    await gateway.reload({ servers: {} });
    expect((await open.done).raw.length).toBeGreaterThan(30_000_000);
  });

  test('fails no call of clients on kept-alive connections, whatever it changes', async () => {
    const [kept, changed] = await Promise.all([child('kept'), child('changed')]);
    const config = (round: number): object => ({
      limits: { body: `${8 + round}MiB` },
      servers: { kept: kept.server, changed: { ...changed.server, env: { ROUND: String(round) } } },
    });
    const gateway = await gatewayOf(config(0));
    const pools = ['kept__echo', 'changed__echo'].map((tool) => startPool(gateway.url, { clients: 8, tool }));
    for (let round = 1; round <= 4; round++) {
      await Promise.all(pools.map((pool) => pool.more(100)));
      expect((await gateway.reload(config(round))).kind).toBe('taken');
    }
    await Promise.all(pools.map((pool) => pool.more(100)));
    await Promise.all(pools.map((pool) => pool.stop()));
    expect(pools.flatMap(({ failed }) => failed)).toEqual([]);
    expect([pids(kept).length, pids(changed).length]).toEqual([1, 5]);
  });

  test('keeps sessions, streams and watched resources, and tells them of what has changed', async () => {
    const [one, two] = await Promise.all([child('one', { era: 'legacy' }), child('two', { era: 'modern' })]);
    const gateway = await gatewayOf({ servers: { one: one.server, two: two.server } });
    const session = await openSession(gateway.url);
    const stream = await openCall(gateway.url, 'subscriptions/listen', {
      notifications: { toolsListChanged: true, resourceSubscriptions: ['raw://one/one', 'raw://two/one'] },
    });
    expect((await stream.next()).params?.['notifications']).toMatchObject({
      resourceSubscriptions: ['raw://one/one', 'raw://two/one'],
    });
    // Notices of lists may come once more, since they are told as soon as something may have changed.
    const until = async (wanted: string): Promise<void> => {
      for (let said = ''; said !== wanted; ) {
        const { method, params } = await stream.next();
        said = `${method} ${params?.['uri'] ?? ''}`.trim();
        if (said !== wanted) expect(said).toBe('notifications/tools/list_changed');
      }
    };
    await gateway.reload({ servers: { two: { ...two.server, env: { MORE: 'yes' } }, one: one.server } });
    await settled(gateway);
    // Of the server that was started anew something may have been missed.
    await until('notifications/resources/updated raw://two/one');
    for (const name of ['one', 'two']) {
      const uri = `raw://${name}/one`;
      await callTool(gateway.url, `${name}__announce`, { what: 'resource', uri });
      await until(`notifications/resources/updated ${uri}`);
    }
    const answer = await session.ask('tools/call', { name: 'two__echo', arguments: { a: 1 } });
    expect(textOf(answer)).toBe('{"a":1}');
    await gateway.reload({ servers: { one: one.server } });
    await until('notifications/tools/list_changed');
    stream.close();
  });

  test('a question that a legacy server has asked is answered after it', async () => {
    const one = await child('one', { era: 'legacy' });
    const gateway = await gatewayOf({ servers: { one: one.server } });
    const session = await openSession(gateway.url, { sampling: {} });
    const open = await session.open('tools/call', { name: 'one__ask', arguments: { kind: 'sampling' } });
    const question = await open.next();
    await gateway.reload({ names: { max: 40 }, servers: { one: one.server } });
    await session.answer(question.id, {
      role: 'assistant',
      content: { type: 'text', text: 'so' },
      model: 'm',
    });
    expect(textOf(await open.done)).toContain('"so"');
  });

  test('keeps the instances of each caller of an isolated server, or lets their calls end and starts them anew', async () => {
    const up = await child('up', { era: 'legacy' });
    const keys = { ann: hashOfKey('key-of-ann'), bob: hashOfKey('key-of-bob') };
    const config = (server: object): object => ({
      keys,
      servers: { up: { ...up.server, isolation: 'caller', ...server } },
    });
    const gateway = await gatewayOf(config({}));
    const { url } = gateway;
    const as = (name: string) => ({ headers: { authorization: `Bearer key-of-${name}` } });
    const namesFor = async (name: string): Promise<string[]> => {
      const { tools } = resultOf(await call(url, 'tools/list', {}, as(name))) as {
        tools: { name: string }[];
      };
      return tools.map((one) => one.name);
    };
    for (const name of ['ann', 'bob']) expect(await namesFor(name)).toContain('up__echo');
    const before = pids(up);
    expect(before).toHaveLength(2);
    await gateway.reload(config({ prefix: 'on', tools: { deny: ['slow'] } }));
    for (const name of ['ann', 'bob']) {
      const names = await namesFor(name);
      expect(names).toContain('on__echo');
      expect(names).not.toContain('on__slow');
    }
    expect(pids(up)).toEqual(before);
    await gateway.reload(config({}));
    const slow = callTool(url, 'up__slow', { ms: 600 }, as('ann'));
    await expect.poll(() => asked(up, 'tools/call')).toBe(1);
    await gateway.reload(config({ env: { MORE: 'yes' } }));
    expect(textOf(await callTool(url, 'up__echo', {}, as('bob')))).toBe('{}');
    expect(textOf(await slow)).toBe('Slept 600 ms');
    await expect.poll(() => before.filter(isAlive)).toEqual([]);
    expect(pids(up).filter(isAlive).length).toBeGreaterThanOrEqual(1);
    expect(textOf(await callTool(url, 'up__echo', {}, as('ann')))).toBe('{}');
    await gateway.reload({ keys, servers: {} });
    await expect.poll(() => pids(up).filter(isAlive)).toEqual([]);
  });

  test('that can not be taken in changes nothing, says why and is counted', async () => {
    const one = await child('one');
    const gateway = await gatewayOf({ servers: { one: one.server } });
    const other = await gatewayOf({});
    const taken = new URL(other.url).host;
    const outcomes = [
      await gateway.reload({ servers: { one: { comand: 'x' } } }),
      await gateway.reload({ listen: taken, servers: {} }),
      await gateway.reload({ admin: taken, servers: {} }),
      await gateway.reload({ tls: { cert: '/no/such/cert', key: '/no/such/key' }, servers: {} }),
    ];
    expect(outcomes.map(({ kind }) => kind)).toEqual(['refused', 'refused', 'refused', 'refused']);
    expect(textOf(await callTool(gateway.url, 'one__echo'))).toBe('{}');
    expect(pids(one)).toHaveLength(1);
    const complaints = gateway.lines.filter(({ level }) => level === 'error').map(({ msg }) => String(msg));
    expect(complaints).toHaveLength(4);
    expect(complaints[0]).toMatch(/config\.yaml:1:\d+ servers\.one\.comand: .*`command`/);
    expect(complaints[1]).toContain(`listen: ${taken} is taken by another program`);
    expect(complaints[2]).toContain(`admin: ${taken} is taken by another program`);
    const figures = await scrape(gateway);
    expect(figures.value('mcpyard_config_reloads_total', { result: 'failure' })).toBe(4);
    expect(figures.value('mcpyard_config_last_reload_successful', {})).toBe(0);
    expect((await gateway.reload({ servers: { one: one.server } })).kind).toBe('taken');
    const after = await scrape(gateway);
    expect(after.value('mcpyard_config_reloads_total', { result: 'success' })).toBe(1);
    expect(after.value('mcpyard_config_last_reload_successful', {})).toBe(1);
    expect(after.value('mcpyard_config_last_reload_success_timestamp_seconds', {})).toBeGreaterThan(
      figures.value('mcpyard_config_last_reload_success_timestamp_seconds', {}) ?? 0,
    );
  });

  test('takes in who may come, how much and how it is logged, from the next request on', async () => {
    const one = await child('one', { args: ['--page-size', '50'] });
    const servers = { one: one.server };
    const gateway = await gatewayOf({ servers });
    const stranger = { headers: { host: 'gateway.example' } };
    const statusOf = async (options: object = {}): Promise<number> =>
      (await call(gateway.url, 'tools/list', {}, options)).status;
    expect([await statusOf(), await statusOf(stranger)]).toEqual([200, 403]);
    const hash = `sha256:${'0'.repeat(64)}`;
    await gateway.reload({ servers, hosts: ['gateway.example'], keys: { me: hash } });
    expect([await statusOf(), await statusOf(stranger)]).toEqual([403, 401]);
    await gateway.reload({
      servers,
      lists: { pageSize: 3 },
      limits: { body: '1KiB' },
      log: { level: 'error' },
    });
    expect(await namesOf(gateway)).toHaveLength(3);
    expect((await callTool(gateway.url, 'one__echo', { text: 'x'.repeat(2_000) })).status).toBe(413);
    const lines = gateway.lines.length;
    expect((await callTool(gateway.url, 'one__none')).response?.error?.code).toBe(-32602);
    expect(gateway.lines).toHaveLength(lines);
  });

  test('opens the new address before it leaves the old one, whose calls end', async () => {
    const one = await child('one');
    const servers = { one: one.server };
    const gateway = await gatewayOf({ servers, listen: '127.0.0.1:0' });
    const { url, admin } = gateway;
    const slow = callTool(url, 'one__slow', { ms: 500 });
    await expect.poll(() => asked(one, 'tools/call')).toBe(1);
    await gateway.reload({ servers, listen: '127.0.0.2:0', admin: '127.0.0.2:0' });
    expect(new URL(gateway.url).hostname).toBe('127.0.0.2');
    expect((await call(gateway.url, 'tools/list', {}, { headers: { host: 'localhost' } })).status).toBe(200);
    expect((await fetch(`${gateway.admin}/healthz`)).status).toBe(200);
    expect(textOf(await slow)).toBe('Slept 500 ms');
    for (const old of [url, `${admin}/healthz`])
      await expect
        .poll(() =>
          fetch(old).then(
            () => 'open',
            () => 'closed',
          ),
        )
        .toBe('closed');
  });

  test('takes in other files of a certificate for new connections, and switches TLS on or off at another address alone', async () => {
    const pem = (name: string): string =>
      fileURLToPath(new URL(`../support/tls/${name}.pem`, import.meta.url));
    const tls = (name: string): object => ({ tls: { cert: pem(`${name}.cert`), key: pem(`${name}.key`) } });
    const gateway = await gatewayOf(tls('first'));
    const shown = async (): Promise<string> => {
      const socket = connect({ port: Number(new URL(gateway.url).port), rejectUnauthorized: false });
      await once(socket, 'secureConnect');
      const { fingerprint256 } = socket.getPeerCertificate();
      socket.destroy();
      return fingerprint256;
    };
    const first = await shown();
    expect((await gateway.reload(tls('second'))).kind).toBe('taken');
    const second = await shown();
    expect(second).not.toBe(first);
    expect(await gateway.reload({})).toMatchObject({
      kind: 'refused',
      error: { message: expect.stringContaining('takes a restart') },
    });
    expect(await shown()).toBe(second);
    expect((await gateway.reload({ listen: 'localhost:0' })).kind).toBe('taken');
    expect(gateway.url).toMatch(/^http:/);
    expect((await call(gateway.url, 'tools/list')).status).toBe(200);
  });

  test('comes after the one before it, of several that wait only the last, and none while the gateway stops', async () => {
    const gateway = await gatewayOf({});
    const kinds = (
      await Promise.all([1, 2, 3, 4].map((max) => gateway.reload({ names: { max: 30 + max } })))
    ).map(({ kind }) => kind);
    expect(kinds.at(-1)).toBe('taken');
    expect(kinds.slice(0, -1)).not.toContain('refused');
    expect(gateway.app.config.names.max).toBe(34);
    const stopping = gateway.app.stop(0);
    expect((await gateway.reload({ names: { max: 40 } })).kind).toBe('passed-over');
    await stopping;
  });

  test('hides the secrets of every config so far', async () => {
    const gateway = await gatewayOf({ metrics: { token: 'old-secret-token' } });
    await gateway.reload({
      metrics: { token: 'new-secret-token' },
      servers: { bad: { command: ['/no/old-secret-token/new-secret-token'] } },
    });
    await expect.poll(() => gateway.lines.some(({ msg }) => /^bad: down/.test(String(msg)))).toBe(true);
    expect(JSON.stringify(gateway.lines)).not.toMatch(/old-secret|new-secret/);
  });
});
