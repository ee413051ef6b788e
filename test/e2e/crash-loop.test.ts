import { afterEach, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { childScript } from '../support/scripted.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const ending of endings.splice(0).reverse()) await ending();
});

test('a child that only ever ends is said to be in a crash loop, once, in the log, the readiness and the metrics', async () => {
  const child = childScript("console.error('no licence'); process.exit(1);");
  endings.push(() => child.stop());
  const gateway = await startGateway({
    servers: { one: { ...child.server, restart: { initial: '5ms', max: '10ms' } } },
  });
  endings.push(() => gateway.stop());
  const one = async () =>
    ((await (await fetch(`${gateway.admin}/readyz`)).json()) as ReadinessOfOne).upstreams.one;
  await expect.poll(one).toMatchObject({
    state: 'crash_loop',
    error: expect.stringContaining('no licence'),
  });
  const before = child.starts();
  await expect.poll(() => child.starts()).toBeGreaterThan(before + 2);
  expect(gateway.lines.filter(({ msg }) => String(msg).includes('crash loop'))).toHaveLength(1);
  expect(await (await fetch(`${gateway.admin}/metrics`)).text()).toContain(
    'mcpyard_upstream_crash_loop{upstream="one"} 1',
  );
});

test('a server that is being tried again says why it could not be started before', async () => {
  // The probe ends the first process, and what comes first ends the second; the third says nothing.
  const child = childScript(`
    const { readFileSync } = await import('node:fs');
    if (readFileSync(starts, 'utf8').length <= 2) { console.log('no licence'); process.exit(1); }
    on['server/discover'] = () => {}; on.initialize = () => {};`);
  endings.push(() => child.stop());
  const gateway = await startGateway({
    servers: { one: { ...child.server, startTimeout: '1m', restart: { initial: '5ms' } } },
  });
  endings.push(() => gateway.stop());
  const one = async () =>
    ((await (await fetch(`${gateway.admin}/readyz`)).json()) as ReadinessOfOne).upstreams.one;
  await expect.poll(() => child.starts()).toBe(3);
  await expect.poll(one).toMatchObject({
    state: 'starting',
    error: expect.stringMatching(/exited with code 1; its stdout held .*: no licence$/),
  });
});

interface ReadinessOfOne {
  readonly upstreams: { readonly one: object };
}
