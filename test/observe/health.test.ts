import { expect, test } from 'vitest';
import { type Health, healthz, readyz, type UpstreamHealth } from '../../src/observe/health.ts';
import { Secrets } from '../../src/observe/secrets.ts';

const up: UpstreamHealth = {
  name: 'a',
  state: 'up',
  era: 'legacy',
  version: '2025-06-18',
  transport: 'stdio',
  tools: 13,
  leftOut: [{ kind: 'tools', name: 'x', reason: 'taken' }],
};

const healthOf = (upstreams: readonly UpstreamHealth[], isReady = true): Health => ({
  ready: () => isReady,
  upstreams: () => upstreams,
});

const errorShown = (error: string, secrets = new Secrets()): unknown =>
  JSON.parse(readyz(healthOf([{ ...up, error }]), secrets).body).upstreams.a.error;

test('/healthz says ok', () => {
  expect(healthz()).toEqual({ status: 200, body: '{"status":"ok"}' });
});

test('/readyz tells of each upstream, and an upstream that is down does not fail it', () => {
  const down: UpstreamHealth = { name: 'b', state: 'down', transport: 'stdio', error: 'exit 1', leftOut: [] };
  const { status, body } = readyz(healthOf([up, down]), new Secrets());
  expect(status).toBe(200);
  expect(JSON.parse(body)).toEqual({
    status: 'ok',
    upstreams: {
      a: { state: 'up', era: 'legacy', version: '2025-06-18', transport: 'stdio', tools: 13 },
      b: { state: 'down', transport: 'stdio', error: 'exit 1' },
    },
  });
});

test('/readyz is 503 when clients are not served', () => {
  const { status, body } = readyz(healthOf([up], false), new Secrets());
  expect(status).toBe(503);
  expect(JSON.parse(body)).toMatchObject({ status: 'unavailable' });
});

test('/readyz shows no secret, no second line, no user and no query of a URL', () => {
  const secrets = new Secrets(['s3cr3t-value']);
  expect(errorShown('refused: s3cr3t-value\n  at stack', secrets)).toBe('refused: [masked]');
  expect(errorShown('GET https://me:pw@host:1/p?key=abc#f failed (see "http://x/?q")')).toBe(
    'GET https://host:1/p failed (see "http://x/")',
  );
  expect(errorShown('x'.repeat(10_000))).toHaveLength(300);
});
