import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Admin } from '../../src/admin/server.ts';
import type { UpstreamHealth } from '../../src/observe/health.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { Secrets } from '../../src/observe/secrets.ts';
import { parseExposition } from '../observe/exposition-text.ts';
import { ownPort } from '../support/port.ts';
import { openAdmin } from './admin.ts';

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

async function ask(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  const sent = request(url, { method, headers });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  return { status: response.statusCode, headers: response.headers, text };
}

const upstreams: readonly UpstreamHealth[] = [
  {
    name: 'every<b>thing',
    state: 'up',
    era: 'legacy',
    version: '2025-11-25',
    transport: 'stdio',
    tools: 13,
    prompts: 4,
    resources: 7,
    leftOut: [{ kind: 'tools', name: '<script>x</script>', reason: 'the name is taken' }],
  },
  {
    name: 'broken',
    state: 'down',
    transport: 'streamable-http',
    error: 'GET https://x/?key=1: "s3cr3t-value" & <img src=x>',
    leftOut: [],
  },
];

describe('the admin listener', () => {
  const metrics = createMetrics({ version: '1' });
  let admin: Admin;
  let isReady = true;
  beforeAll(async () => {
    const secrets = new Secrets(['s3cr3t-value']);
    admin = await openAdmin({ metrics, secrets, upstreams, isReady: () => isReady, hosts: ['gate.example'] });
  });
  afterAll(() => admin.close());

  test('serves metrics as Prometheus reads them', async () => {
    metrics.limitHit('body');
    const { status, headers, text } = await ask(`${admin.url}/metrics`);
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(parseExposition(text).value('mcpyard_limits_hit_total', { limit: 'body' })).toBe(1);
  });

  test('serves health and readiness, which is 503 when it stops', async () => {
    expect(await ask(`${admin.url}/healthz`)).toMatchObject({ status: 200, text: '{"status":"ok"}' });
    const ready = await ask(`${admin.url}/readyz`);
    expect(ready).toMatchObject({ status: 200 });
    expect(ready.headers['content-type']).toMatch(/^application\/json/);
    expect(JSON.parse(ready.text).upstreams.broken.state).toBe('down');
    isReady = false;
    expect(await ask(`${admin.url}/readyz`)).toMatchObject({ status: 503 });
    isReady = true;
  });

  test('shows a page of all upstreams, with everything escaped and no secret', async () => {
    const { status, headers, text } = await ask(`${admin.url}/`);
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; /);
    expect(text).not.toMatch(/<script|<img|<b>|s3cr3t|key=1/);
    for (const part of ['every&lt;b&gt;thing', 'legacy 2025-11-25', '<td>13</td><td>4</td><td>7</td>'])
      expect(text).toContain(part);
    expect(text).toContain('https://x/ &quot;[masked]&quot; &amp; &lt;img src=x&gt;');
    expect(text).toContain('<td>tools</td><td>&lt;script&gt;x&lt;/script&gt;</td><td>the name is taken</td>');
  });

  test.each(['/metrics', '/', '/nothing'])(
    'answers 403 on %s for a host that is not its own',
    async (path) => {
      const { status, text } = await ask(`${admin.url}${path}`, { host: 'evil.example:9808' });
      expect(status).toBe(403);
      expect(JSON.parse(text).error).toContain('`hosts`');
    },
  );

  test.each(['/healthz', '/readyz'])('answers probes on %s whatever their host', async (path) => {
    expect((await ask(`${admin.url}${path}`, { host: 'evil.example' })).status).toBe(200);
  });

  test.each(['localhost', 'LOCALHOST:1', '127.0.0.1:80', '[::1]:9808', 'gate.example', 'Gate.Example:443'])(
    'answers for the host %s',
    async (host) => {
      expect((await ask(`${admin.url}/`, { host })).status).toBe(200);
    },
  );

  test.each([
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'x@localhost',
    'gate.example.',
    '::1',
    '10.0.0.1',
  ])('does not answer for the host %s', async (host) => {
    expect((await ask(`${admin.url}/`, { host })).status).toBe(403);
  });

  test('does not answer where Host is missing', async () => {
    const socket = connect(Number(new URL(admin.url).port), '127.0.0.1');
    socket.end('GET /metrics HTTP/1.0\r\n\r\n');
    let text = '';
    for await (const chunk of socket.setEncoding('utf8')) text += chunk;
    expect(text).toMatch(/^HTTP\/1\.1 403 /);
  });

  test('answers 404 in JSON elsewhere', async () => {
    const { status, headers, text } = await ask(`${admin.url}/nothing`);
    expect(status).toBe(404);
    expect(headers['content-type']).toMatch(/^application\/json/);
    expect(JSON.parse(text)).toHaveProperty('error');
  });

  test.each(['/metrics', '/healthz', '/readyz', '/'])(
    'answers 405 on %s for what is not GET',
    async (path) => {
      for (const method of ['POST', 'DELETE', 'OPTIONS'])
        expect(await ask(`${admin.url}${path}`, {}, method)).toMatchObject({
          status: 405,
          headers: { allow: 'GET, HEAD' },
        });
    },
  );

  test.each(['/metrics', '/healthz', '/'])('answers HEAD on %s without a body', async (path) => {
    expect(await ask(`${admin.url}${path}`, {}, 'HEAD')).toMatchObject({ status: 200, text: '' });
  });

  test('tells nothing of what it is made of and lets nothing be kept', async () => {
    const { headers } = await ask(`${admin.url}/`);
    expect(headers).not.toHaveProperty('x-powered-by');
    expect(headers).not.toHaveProperty('etag');
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  });
});

test('A bug in what is shown is a 500 that says nothing, and its cause is logged', async () => {
  const logged: string[] = [];
  const health = {
    ready: () => true,
    upstreams: () => {
      throw new Error('the inside');
    },
  };
  const admin = await openAdmin({ health, logged });
  const { status, text } = await ask(`${admin.url}/`);
  await admin.close();
  expect(status).toBe(500);
  expect(text).not.toContain('inside');
  expect(JSON.parse(logged[0] ?? '{}')).toMatchObject({ level: 'error', err: { message: 'the inside' } });
});

test('A port that is taken is an error that names the address and the key', async () => {
  const admin = await openAdmin();
  const port = Number(new URL(admin.url).port);
  const second = openAdmin({ address: { host: '127.0.0.1', port } });
  await expect(second).rejects.toMatchObject({
    code: 'EADDRINUSE',
    message: `admin: 127.0.0.1:${port} is taken by another program`,
  });
  await admin.close();
});

test('Closing ends idle connections at once, can be repeated, and frees the port', async () => {
  const tookMs: number[] = [];
  let port = await ownPort();
  for (let attempt = 0; attempt < 3; attempt++) {
    const admin = await openAdmin({ address: { host: '127.0.0.1', port } });
    port = Number(new URL(admin.url).port);
    const socket = connect(port, '127.0.0.1');
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'data');
    const startedMs = performance.now();
    await Promise.all([admin.close(), once(socket, 'close'), admin.close()]);
    tookMs.push(performance.now() - startedMs);
  }
  // Those that are not idle have a second; what else the machine does meanwhile counts for little.
  expect(Math.min(...tookMs)).toBeLessThan(900);
});

test('A scraper that goes away in the middle is no error', async () => {
  const logged: string[] = [];
  const metrics = createMetrics({ version: '1' });
  for (let tool = 0; tool < 150; tool++)
    for (let error = 0; error < 15; error++)
      metrics.serverOperation('tools/call', `t${tool}`, undefined, `e${error}`, '2026-07-28', 0.1);
  const admin = await openAdmin({ metrics, logged });
  const sent = request(`${admin.url}/metrics`);
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  await once(response, 'data');
  response.destroy();
  expect((await ask(`${admin.url}/healthz`)).status).toBe(200);
  await admin.close();
  expect(logged).toEqual([]);
});
