import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { parseExposition } from '../observe/exposition-text.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { requestText } from '../support/modern-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

/** None of these may be told to anybody, nor logged, whoever sent it. */
const canary = {
  key: 'mcy_canary-key-of-ann-0123456789abcdefghijklm',
  other: 'mcy_canary-key-of-bob-0123456789abcdefghijklm',
  wrong: 'mcy_canary-key-that-was-mistyped-0123456789ab',
  header: 'canary-of-the-upstream-header',
  files: 'canary-of-the-files-header',
  token: 'canary-of-the-metrics-token',
  seal: 'canary-of-the-seals-0123456789abcdef',
  cookie: 'canary-of-a-cookie',
  query: 'canary-of-a-query',
  outside: 'canary-of-a-file-outside',
};

let web: Upstream;
let gateway: Gateway;
/** Paths that the server of the files was asked for on behalf of callers: what the gateway asks itself has the header. */
const served: string[] = [];
const files = createServer((req, res) => {
  if (req.headers['x-api-key'] === undefined) served.push(req.url ?? '');
  const isFile = req.url?.startsWith('/files/') === true && req.headers.authorization === undefined;
  res.writeHead(isFile ? 200 : 404);
  res.end(isFile ? 'file' : canary.outside);
});
const agent = new Agent({ keepAlive: true, maxSockets: 8 });

beforeAll(async () => {
  web = await startUpstream({ name: 'web' });
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  gateway = await startGateway({
    hosts: ['gate.example', '127.0.0.1'],
    origins: ['https://app.example'],
    publicUrl: 'https://public.example/mcp',
    trustedProxies: ['10.0.0.0/8'],
    secret: canary.seal,
    keys: { ann: hashOfKey(canary.key), bob: hashOfKey(canary.other) },
    metrics: { token: canary.token },
    servers: {
      web: { ...web.server, headers: { Authorization: `Bearer ${canary.header}` } },
      files: {
        url: `http://127.0.0.1:${(files.address() as AddressInfo).port}/mcp`,
        headers: { 'X-Api-Key': canary.files },
        passthrough: ['/files'],
      },
    },
  });
});

afterAll(async () => {
  agent.destroy();
  await gateway.stop();
  await web.stop();
  files.close();
});

interface Tried {
  readonly method: string;
  readonly path: string;
  readonly host: string | undefined;
  readonly forwardedHost: string | undefined;
  readonly origin: string | undefined;
  readonly authorization: readonly string[];
  readonly media: string | undefined;
  readonly version: string | undefined;
  readonly session: string | undefined;
  readonly body: string;
}

const echo = requestText('tools/call', { name: 'web__echo', arguments: { a: 1 } });
const bearer = (key: string): string => `Bearer ${key}`;

/** Ways in, and around them. */
const filePaths = ['/servers/files/files/a', '/servers/files/files/b%20c?d=e'];
const paths = [
  ...filePaths,
  '/',
  '/MCP',
  '/mcp/',
  '//mcp',
  '/./mcp',
  '/%6dcp',
  '/mcp;x',
  '/healthz/../mcp',
  '/healthz/',
  '/metrics',
  '*',
  'http://127.0.0.1/mcp',
  'http://evil.example/mcp',
  '/servers/files/mcp',
  '/servers/files/other',
  '/servers/files/files/../other',
  '/servers/files/files/%2e%2e/other',
  '/servers/files/files/..%2fother',
  '/servers/files/files/%252e%252e%252fother',
  '/servers/files/files\\..\\other',
  '/servers/files/files/..;/other',
  '/servers/files//files/a',
  '/servers/files/files/\xe9',
  '/servers/web/mcp',
  '/servers/web/files/a',
  '/servers/../mcp',
  '/servers/__proto__/files',
];
const nearlyKeys = [
  canary.wrong,
  canary.key.slice(0, -1),
  `${canary.key}x`,
  canary.key.toUpperCase(),
  hashOfKey(canary.key),
  hashOfKey(canary.key).slice('sha256:'.length),
  canary.token,
  canary.header,
  'anonymous',
  'ann',
];
const credentials: fc.Arbitrary<readonly string[]> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom([bearer(canary.key)], [bearer(canary.other)]) },
  { weight: 4, arbitrary: fc.constantFrom(...nearlyKeys).map((key) => [bearer(key)]) },
  fc.constant([]),
  fc.constantFrom(
    ['', bearer(canary.key)],
    [bearer(canary.key), bearer(canary.key)],
    [bearer(canary.wrong), bearer(canary.key)],
    [`Basic ${Buffer.from(`ann:${canary.key}`).toString('base64')}`],
    [canary.key],
    [`Bearer ${canary.key}, Bearer ${canary.key}`],
    [`Bearer "${canary.key}"`],
    [`Bearer ${'a'.repeat(5_000)}`],
  ),
  fc.string({ unit: fc.constantFrom(...' abBearer=_-~\xe9'), maxLength: 40 }).map((text) => [text]),
);

const tried: fc.Arbitrary<Tried> = fc.record({
  method: fc.oneof(
    { weight: 6, arbitrary: fc.constant('POST') },
    { weight: 3, arbitrary: fc.constant('GET') },
    fc.constantFrom('HEAD', 'DELETE', 'PUT', 'OPTIONS', 'PATCH', 'TRACE'),
  ),
  path: fc.oneof(
    { weight: 6, arbitrary: fc.constant('/mcp') },
    { weight: 5, arbitrary: fc.constantFrom(...paths) },
    fc.constant(`/mcp?token=${canary.query}`),
    fc
      .string({ unit: fc.constantFrom(...'/.%2efmcpservilbt\\;?'), maxLength: 30 })
      .map((text) => `/${text}`)
      .filter((text) => !/^\/(?:healthz|readyz|sse)(?:\?|$)/.test(text)),
  ),
  host: fc.oneof(
    {
      weight: 8,
      arbitrary: fc.constantFrom('127.0.0.1', '127.0.0.1:8808', 'gate.example', 'PUBLIC.example:1'),
    },
    fc.constantFrom(
      'evil.example',
      'localhost',
      'gate.example.evil.example',
      '127.0.0.1@evil.example',
      '',
      '[::1',
      'gate.example, evil.example',
    ),
    fc.constant(undefined),
  ),
  forwardedHost: fc.option(fc.constantFrom('gate.example', 'evil.example'), { nil: undefined, freq: 5 }),
  origin: fc.oneof(
    { weight: 6, arbitrary: fc.constant(undefined) },
    fc.constantFrom('https://app.example', 'https://public.example', 'http://localhost:5173'),
    fc.constantFrom(
      'null',
      '',
      'https://evil.example',
      'http://app.example',
      'https://app.example.evil.example',
    ),
  ),
  authorization: credentials,
  media: fc.constantFrom('application/json', 'application/json', 'application/json', 'text/plain', undefined),
  version: fc.constantFrom('2026-07-28', '2026-07-28', '2026-07-28', '2025-11-25', '1999-01-01', undefined),
  session: fc.constantFrom(undefined, undefined, undefined, 'no-session', 'a'.repeat(2_000)),
  body: fc.oneof(
    { weight: 4, arbitrary: fc.constant(echo) },
    fc.constantFrom(
      requestText('tools/list', {}),
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}',
      '[]',
      '',
      '{"jsonrpc":"2.0","method":"__proto__"}',
      '{',
    ),
    fc.json({ maxDepth: 2 }),
  ),
});

interface Got {
  readonly status: number;
  readonly body: string;
}

async function send(url: string, one: Tried): Promise<Got> {
  const { port } = new URL(url);
  const isBodied = !['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'].includes(one.method);
  const pairs: readonly (readonly [string, string | undefined])[] = [
    ['Host', one.host],
    ['X-Forwarded-Host', one.forwardedHost],
    ['Origin', one.origin],
    ...one.authorization.map((value) => ['Authorization', value] as const),
    ['Cookie', `session=${canary.cookie}`],
    ['Content-Type', one.media],
    ['Accept', 'application/json, text/event-stream'],
    ['MCP-Protocol-Version', one.version],
    ['Mcp-Session-Id', one.session],
    ['Mcp-Method', one.body === echo ? 'tools/call' : 'tools/list'],
    ['Mcp-Name', one.body === echo ? 'web__echo' : undefined],
    ['Content-Length', isBodied ? String(Buffer.byteLength(one.body)) : undefined],
  ];
  const headers = pairs.flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
  const sent = request({ host: '127.0.0.1', port, agent, method: one.method, path: one.path, headers });
  sent.end(isBodied ? one.body : undefined);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: (await buffer(response)).toString('latin1') };
}

/** Sends all, several at a time, over connections that are kept. */
async function sendAll(url: string, all: readonly Tried[]): Promise<readonly (readonly [Tried, Got])[]> {
  const results: (readonly [Tried, Got])[] = [];
  const waiting = all.values();
  const work = async (): Promise<void> => {
    for (const one of waiting) results.push([one, await send(url, one)]);
  };
  await Promise.all(Array.from({ length: 16 }, work));
  return results;
}

const allowedHost = /^(?:127\.0\.0\.1|gate\.example|public\.example)(?::\d+)?$/i;
const allowedOrigins: readonly (string | undefined)[] = [
  undefined,
  'https://app.example',
  'https://public.example',
  'http://localhost:5173',
];
const rightKeys = [bearer(canary.key), bearer(canary.other)];

/** A whole URL says for which host it is, whatever Host says. */
const hostOf = ({ host, path }: Tried): string | undefined => /^http:\/\/([^/]+)/.exec(path)?.[1] ?? host;

const isAtHome = (one: Tried): boolean =>
  allowedHost.test(hostOf(one) ?? '') && allowedOrigins.includes(one.origin);
const hasRight = (one: Tried): boolean =>
  isAtHome(one) && one.authorization.length === 1 && rightKeys.includes(one.authorization[0] ?? '');

const stack = /\bat .{1,200}:\d+:\d+|node:internal|node_modules|\.[tj]s:\d|Error:/;

function expectNoSecret(text: string, what: string): void {
  for (const [name, secret] of Object.entries(canary))
    expect(text.includes(secret), `${name} in ${what}`).toBe(false);
}

const runs = { listen: 8_500, admin: 1_500 };

function expectNothingTold(one: Tried, { body }: Got): void {
  expect(stack.test(body), body).toBe(false);
  expectNoSecret(body, `the answer to ${one.method} ${one.path}`);
}

const isAnswer = (status: number): boolean => status < 500 && status !== 401 && status !== 403;

/** What is no HTTP is refused before anything is looked at, with an empty body. */
const isRefusal = (one: Tried, { status, body }: Got): boolean =>
  isAtHome(one) ? status === 401 || (status === 400 && body === '') : [400, 401, 403].includes(status);

const metricsPaths = [
  '/metrics',
  '/metrics',
  '/metrics?x=1',
  '/METRICS',
  '/metrics/',
  '//metrics',
  '/%6detrics',
  '/x',
];
const asked: fc.Arbitrary<Tried> = fc
  .tuple(tried, fc.constantFrom(...metricsPaths), fc.oneof(credentials, fc.constant([bearer(canary.token)])))
  .map(([one, path, authorization]) => ({ ...one, path, authorization }));

describe('of 10,000 requests', () => {
  let atListen: Awaited<ReturnType<typeof sendAll>>;
  let atAdmin: Awaited<ReturnType<typeof sendAll>>;
  beforeAll(async () => {
    atListen = await sendAll(gateway.url, fc.sample(tried, { numRuns: runs.listen, seed: 1 }));
    atAdmin = await sendAll(gateway.admin, fc.sample(asked, { numRuns: runs.admin, seed: 2 }));
  });

  test('none without a right is answered by the endpoint, and none learns more than it should', () => {
    for (const [one, got] of atListen) expectNothingTold(one, got);
    const rightful = atListen.filter(([one]) => hasRight(one));
    expect(rightful.filter(([, { status }]) => !isAnswer(status))).toEqual([]);
    const refused = atListen.filter(([one]) => !hasRight(one));
    expect(refused.filter(([one, got]) => !isRefusal(one, got))).toEqual([]);
    const refusals = refused.filter(([{ method }, { status }]) => status === 401 && method !== 'HEAD');
    expect(atListen).toHaveLength(runs.listen);
    expect(rightful.length).toBeGreaterThan(1_000);
    expect(rightful.filter(([, { status }]) => status === 200).length).toBeGreaterThan(100);
    // One answer for all that is wrong with a key.
    expect(new Set(refusals.map(([, { body }]) => body)).size).toBe(1);
    const calls = rightful.filter(([, { body }]) => body.includes('{\\"a\\":1}'));
    const seen = web.seen().filter(({ method }) => method === 'tools/call');
    expect(calls.length).toBeGreaterThan(50);
    expect(seen).toHaveLength(calls.length);
    const passed = rightful.filter(([{ path }, { status }]) => filePaths.includes(path) && status === 200);
    expect(passed.length).toBeGreaterThan(15);
    expect(served).toHaveLength(passed.length);
    expect(served.filter((path) => !path.startsWith('/files/'))).toEqual([]);
  });

  test('none without the token reads metrics', () => {
    let read = 0;
    for (const [one, { status, body }] of atAdmin) {
      expectNothingTold(one, { status, body });
      const hasToken = one.authorization.length === 1 && one.authorization[0] === bearer(canary.token);
      if (hasToken && status === 200) read += 1;
      else expect([one, body.includes('mcpyard_build_info')]).toEqual([one, false]);
      if (!hasToken) expect([one, status]).not.toEqual([one, 200]);
    }
    expect(read).toBeGreaterThan(20);
  });

  test('none leaves a secret or a stack in the log, nor floods it, and all without a key are counted', async () => {
    const log = gateway.lines.map((line) => JSON.stringify(line)).join('\n');
    expectNoSecret(log, 'the log');
    expect(log).toContain('a request was refused for want of a right key');
    const lines = gateway.lines.filter(({ msg }) => String(msg).startsWith('a request was refused'));
    expect(lines.length).toBeLessThan(100);
    expect(lines.some(({ dropped }) => Number(dropped) > 0)).toBe(true);
    expect(gateway.lines.filter(({ level }) => level === 'error')).toEqual([]);
    const scraped = await fetch(`${gateway.admin}/metrics`, {
      headers: { authorization: bearer(canary.token) },
    });
    const { samples } = parseExposition(await scraped.text());
    const failures = samples.filter(({ name }) => name === 'mcpyard_auth_failures_total');
    expect(failures.reduce((sum, { value }) => sum + value, 0)).toBeGreaterThan(3_000);
    expect(failures.map(({ labels }) => labels['reason']).toSorted()).toEqual([
      'long',
      'malformed',
      'missing',
      'several',
      'unknown',
    ]);
  });
});
