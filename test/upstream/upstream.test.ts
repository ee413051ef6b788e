import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { RpcError } from '../../src/protocol/errors.ts';
import {
  childScript,
  discovered,
  legacyScript,
  modernScript,
  type Script,
  type Scripted,
  startScript,
} from '../support/scripted.ts';
import { callOf, send } from './calls.ts';
import { closeAll, openOne } from './opened.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  await closeAll();
  for (const ending of endings.splice(0)) await ending();
});

async function serve(script: Script): Promise<Scripted> {
  const server = await startScript(script);
  endings.push(() => server.stop());
  return server;
}

function child(code: string) {
  const script = childScript(code);
  endings.push(() => script.stop());
  return script;
}

const modernChild = "on['server/discover'] = ({ reply }) => reply(discovered);";

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe('a child', () => {
  test('that goes away is started again, and told as lost and as up', async () => {
    const { server, starts } = child(`${modernChild} on['tools/call'] = () => process.exit(7);`);
    const { upstream, told, settled } = openOne(server);
    const live = await settled();
    await expect(send(live, callOf('x'))).rejects.toMatchObject({ code: 5021 });
    await expect.poll(() => upstream.live).toBeDefined();
    expect(starts()).toBe(2);
    expect(upstream.live?.connection).not.toBe(live.connection);
    expect(told.filter((line) => !line.startsWith('failed'))).toEqual([
      'up',
      expect.stringMatching(/^lost: .*code 7/),
      'up',
    ]);
  });

  test('that never comes up is tried again, later each time, and says why and when', async () => {
    const { server, starts } = child("console.error('no licence'); process.exit(1);");
    const { upstream, settled } = openOne(server);
    await expect(settled()).rejects.toThrow('no licence');
    await expect.poll(starts).toBeGreaterThan(1);
    await expect.poll(() => upstream.state.kind).toBe('down');
    const error: RpcError = await upstream.ready(0).then(
      () => expect.fail('it is up'),
      (cause: RpcError) => cause,
    );
    expect(error.code).toBe(5030);
    expect(error.message).toMatch(
      /server `up` is down: .*no licence.*\(next try in \d+ s\); nothing was sent/,
    );
  });

  test('ends with its upstream, and is not started again', async () => {
    const { server, starts } = child(
      `${modernChild} on['tools/call'] = ({ reply }) => reply({ pid: process.pid });`,
    );
    const { upstream, settled } = openOne(server);
    const reply = await send(await settled(), callOf('x'));
    const { pid } = JSON.parse(Buffer.concat([...reply.parts]).toString()).result;
    expect(isAlive(pid)).toBe(true);
    await upstream.stop();
    await expect.poll(() => isAlive(pid)).toBe(false);
    await sleep(300);
    expect([starts(), upstream.state.kind]).toEqual([1, 'stopped']);
    upstream.start();
    expect(upstream.state.kind).toBe('stopped');
    await expect(upstream.ready(0)).rejects.toThrow('server `up` is stopped; nothing was sent');
  });

  test('that is stopped while it starts is never told as up or down', async () => {
    const { server } = child("on['server/discover'] = () => {};");
    const { upstream, told } = openOne(server);
    const { state } = upstream;
    await sleep(50);
    await upstream.stop();
    if (state.kind === 'starting') await state.done;
    expect([told, upstream.state.kind]).toEqual([[], 'stopped']);
  });

  test('fails the calls that it had in flight when it is stopped', async () => {
    const { server, methods } = child(`${modernChild} on['tools/call'] = () => {};`);
    const { upstream, settled } = openOne(server);
    const done = send(await settled(), callOf('x'));
    done.catch(() => undefined);
    await expect.poll(methods).toContain('tools/call');
    await upstream.stop();
    await expect(done).rejects.toMatchObject({ code: 5021, message: expect.stringContaining('server `up`') });
  });

  test('that tells of changed lists is heard', async () => {
    const { server } = child(
      `${modernChild} on['tools/call'] = ({ reply }) => { write({ method: 'notifications/tools/list_changed' }); reply({}); };`,
    );
    const { told, settled } = openOne(server);
    await send(await settled(), callOf('x'));
    expect(told).toContain('changed tools');
  });

  test('that says what is no message is counted, and goes on', async () => {
    const { server } = child(
      `console.log('Listening'); ${modernChild} on['tools/call'] = ({ reply }) => reply({});`,
    );
    const { told, settled } = openOne(server);
    await send(await settled(), callOf('x'));
    expect(told).toContain('dropped noise');
  });

  test('whose client gave a call up has not failed', async () => {
    const { server, methods } = child(`${modernChild} on['tools/call'] = () => {};`);
    const { told, settled } = openOne(server);
    const live = await settled();
    const call = callOf('x');
    const done = send(live, call);
    call.signal.abort(new RpcError(4990, 'The client closed the connection'));
    await expect(done).rejects.toThrow();
    await expect.poll(methods).toContain('notifications/cancelled');
    expect(told).toEqual(['up']);
  });
});

describe('ready', () => {
  test('waits for a start that is under way', async () => {
    const { server } = child(
      "on['server/discover'] = async ({ reply }) => { await sleep(200); reply(discovered); };",
    );
    const { upstream } = openOne(server);
    expect((await upstream.ready(5_000)).profile.dialect.era).toBe('modern');
  });

  test('waits no longer than it is told, counted from the start', async () => {
    const { server } = child("on['server/discover'] = () => {};");
    const { upstream } = openOne({ ...server, startTimeout: '5s' });
    const startMs = performance.now();
    await expect(upstream.ready(200)).rejects.toThrow('server `up` is still starting; nothing was sent');
    await expect(upstream.ready(200)).rejects.toThrow('still starting');
    expect(performance.now() - startMs).toBeLessThan(3_000);
  });
});

describe('a server over HTTP', () => {
  test('that is not there comes up when it is', async () => {
    const server = await serve(modernScript({}));
    await server.stop();
    const { upstream, settled } = openOne(server.server);
    await expect(settled()).rejects.toThrow('ECONNREFUSED');
    expect(upstream.live).toBeUndefined();
  });

  test('that goes away is told as lost by the call that met it, and is tried again', async () => {
    const server = await serve(modernScript({ 'tools/call': () => ({ content: [] }) }));
    const { upstream, told, settled } = openOne(server.server);
    const live = await settled();
    await send(live, callOf('x'));
    await server.stop();
    // The first call may meet a connection that is dead without being known to be.
    await expect.poll(() => send(live, callOf('x')).catch(({ code }: RpcError) => code)).toBe(5030);
    expect(told).toContainEqual(expect.stringMatching(/^lost: /));
    expect(['down', 'starting']).toContain(upstream.state.kind);
  });

  test('that loses one connection stays up', async () => {
    const server = await serve(modernScript({ 'tools/call': ({ response }) => void response.destroy() }));
    const { upstream, told, settled } = openOne(server.server);
    const live = await settled();
    await expect(send(live, callOf('x'))).rejects.toMatchObject({ code: 5021 });
    expect(upstream.live).toBe(live);
    expect(told).toEqual(['up', 'failed lost']);
  });
});

describe('changes are pushed', () => {
  const pushing = { tools: { listChanged: true }, prompts: {}, resources: {} };
  const acknowledge = ({ id, response }: Parameters<Script[string]>[0]): void => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const params = { _meta: { 'io.modelcontextprotocol/subscriptionId': id }, notifications: {} };
    const message = { jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params };
    response.write(`data: ${JSON.stringify(message)}\n\n`);
  };

  test('by a modern server from the moment that it acknowledged the listen', async () => {
    const server = await serve(modernScript({ 'subscriptions/listen': acknowledge }, pushing));
    const { upstream, told, settled } = openOne(server.server);
    await settled();
    await expect.poll(() => upstream.pushes('tools')).toBe(true);
    expect(upstream.pushes('prompts')).toBe(false);
    expect(told.filter((line) => line.includes('changed'))).toEqual(['may have changed tools templates']);
    const [listen] = server.seen.filter(({ method }) => method === 'subscriptions/listen');
    expect(listen?.params['notifications']).toEqual({ toolsListChanged: true });
  });

  test('no longer when the stream has ended, and what was missed is told when it is open again', async () => {
    const streams: (() => void)[] = [];
    const server = await serve(
      modernScript(
        {
          'subscriptions/listen': (asked) => {
            acknowledge(asked);
            streams.push(() => asked.response.end());
          },
        },
        pushing,
      ),
    );
    const { upstream, told, settled } = openOne(server.server);
    await settled();
    await expect.poll(() => upstream.pushes('tools')).toBe(true);
    streams[0]?.();
    await expect.poll(() => upstream.pushes('tools')).toBe(false);
    await expect.poll(() => upstream.pushes('tools')).toBe(true);
    expect(told.filter((line) => line.startsWith('changed'))).toEqual(['changed tools templates']);
  });

  test('by no modern server that refuses the listen', async () => {
    const server = await serve(modernScript({}, pushing));
    const { upstream, settled } = openOne(server.server);
    await settled();
    await expect.poll(server.methods).toContain('subscriptions/listen');
    await sleep(50);
    expect(upstream.pushes('tools')).toBe(false);
    expect(upstream.live).toBeDefined();
  });

  test('by a legacy server over HTTP once its stream is open', async () => {
    const server = await serve(
      legacyScript(
        {
          GET: ({ response }) =>
            void response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
        },
        pushing,
      ),
    );
    const { upstream, settled } = openOne(server.server);
    await settled();
    await expect.poll(() => upstream.pushes('tools')).toBe(true);
  });

  test('by no legacy server over HTTP without a stream', async () => {
    const server = await serve(legacyScript({}, pushing));
    const { upstream, settled } = openOne(server.server);
    await settled();
    await expect.poll(server.methods).toContain('GET');
    await sleep(50);
    expect(upstream.pushes('tools')).toBe(false);
  });

  test('by a legacy child that says so, at once', async () => {
    const { server } = child(
      'on.initialize = ({ reply }) => reply({ ...initialized, capabilities: { tools: { listChanged: true } } });',
    );
    const { upstream, settled } = openOne(server);
    await settled();
    expect([upstream.pushes('tools'), upstream.pushes('resources')]).toEqual([true, false]);
  });

  test('by no server that does not declare them, which is not listened to', async () => {
    const server = await serve(modernScript({ 'server/discover': () => discovered({ tools: {} }) }));
    const { upstream, settled } = openOne(server.server);
    await settled();
    await sleep(50);
    expect(upstream.pushes('tools')).toBe(false);
    expect(server.methods()).toEqual(['server/discover']);
  });
});
