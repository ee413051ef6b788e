import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeEras } from '../support/eras.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { openSession } from '../support/legacy-session.ts';
import { call, resultOf } from '../support/modern-client.ts';
import type { Upstream } from '../support/upstream.ts';

const trace = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=t61rcWkgMzE,other=00f067aa',
  baggage: 'user=a%20b,session=7',
};

describeEras('a trace', ({ start }) => {
  let upstream: Upstream;
  let gateway: Gateway;
  const arrived = (method: string): unknown => {
    const raw = upstream.seen().findLast((one) => one.method === method)?.raw ?? '{}';
    return (JSON.parse(raw) as { params?: { _meta?: unknown } }).params?._meta;
  };

  beforeAll(async () => {
    upstream = await start();
    gateway = await startGateway({ servers: { up: upstream.server } });
  });
  afterAll(async () => gateway?.stop());

  test.each([
    ['tools/call', { name: 'up__echo', arguments: {} }],
    ['prompts/get', { name: 'up__greet', arguments: { who: 'you' } }],
    ['resources/read', { uri: 'raw://raw/one' }],
    ['vendor/echo', {}],
  ])('of a client of either era reaches the upstream untouched with %s', async (method, params) => {
    resultOf(await call(gateway.url, method, params, { meta: trace }));
    expect(arrived(method)).toMatchObject(trace);
    const session = await openSession(gateway.url);
    const meta = { ...trace, traceparent: trace.traceparent.replace('-01', '-00') };
    resultOf(await session.ask(method, { ...params, _meta: meta }));
    expect(arrived(method)).toMatchObject(meta);
    await session.end();
  });
});

describeEras('a cursor', ({ start }) => {
  test('goes on where it was after the gateway has started again', async () => {
    const upstream = await start();
    const config = {
      secret: 'a secret that both starts have in common',
      lists: { pageSize: 4 },
      servers: { up: upstream.server },
    };
    const page = async (gateway: Gateway, cursor?: unknown) => {
      const params = cursor === undefined ? {} : { cursor };
      const { tools, nextCursor } = resultOf(await call(gateway.url, 'tools/list', params));
      return { names: (tools as { name: string }[]).map(({ name }) => name), nextCursor };
    };
    const first = await startGateway(config);
    const begun = await page(first);
    const next = await page(first, begun.nextCursor);
    await first.stop();
    const second = await startGateway(config);
    expect(await page(second, begun.nextCursor)).toMatchObject({ names: next.names });
    expect(next.names).not.toEqual(begun.names);
    await second.stop();
  });
});
