import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { Upstream } from '../../src/upstream/upstream.ts';
import type { UpstreamOptions } from '../../src/upstream/upstream-options.ts';

test('a transport that can not be loaded leaves its server down, and is tried again', async () => {
  const told: string[] = [];
  let opened = 0;
  const options = {
    name: 'far',
    transports: ['streamable-http'],
    restart: { initialMs: 10, maxMs: 10, stableMs: 10 },
    open: () => {
      opened++;
      return Promise.reject(new Error(`no module ${randomUUID()}`));
    },
    events: { down: (_: Upstream, error: Error) => told.push(error.message) },
    now: () => performance.now(),
    random: () => 0,
  } as unknown as UpstreamOptions;
  const upstream = new Upstream(options);
  upstream.start();
  await expect.poll(() => opened).toBeGreaterThanOrEqual(2);
  expect(told[0]).toMatch(/^no module /);
  expect(['down', 'starting']).toContain(upstream.state.kind);
  await upstream.stop();
});
