import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { call, openCall, resultOf } from '../support/modern-client.ts';
import { startUpstream, type Upstream, type UpstreamOptions } from '../support/upstream.ts';

// What crosses to upstreams, as they got it: names, headers, `_meta`, capabilities. Servers depend on every literal in crossing.json.

interface Crossing {
  readonly headers?: Readonly<Record<string, string>>;
  /** As it was written; ids and tokens, which are the gateway's own, are N. */
  readonly body: string;
}

type Crossings = Readonly<Record<string, Crossing>>;

const pins = JSON.parse(readFileSync(new URL('crossing.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, Crossings>
>;

const legacy = (transport: 'http' | 'stdio' | 'sse', version: string): UpstreamOptions => ({
  era: 'legacy',
  transport,
  args: ['--version', version],
});
const kinds: Readonly<Record<string, UpstreamOptions>> = {
  '2026-07-28 over http': { era: 'modern', transport: 'http' },
  '2026-07-28 over stdio': { era: 'modern', transport: 'stdio' },
  '2025-11-25 over http': legacy('http', '2025-11-25'),
  '2025-11-25 over stdio': legacy('stdio', '2025-11-25'),
  '2025-06-18 over http': legacy('http', '2025-06-18'),
  '2025-06-18 over stdio': legacy('stdio', '2025-06-18'),
  '2025-03-26 over http': legacy('http', '2025-03-26'),
  '2025-03-26 over stdio': legacy('stdio', '2025-03-26'),
  '2024-11-05 over sse': legacy('sse', '2024-11-05'),
};

/** Those of the connection, which the HTTP client sets for itself. */
const ofTransport = new Set(['host', 'connection', 'content-length', 'user-agent', 'keep-alive']);

function headersOf(raw: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    if (!ofTransport.has(name)) headers[name] = name === 'mcp-session-id' ? 'ISSUED' : (raw[at + 1] ?? '');
  }
  return headers;
}

const withoutNumbers = (raw: string): string =>
  raw
    .replaceAll(/"(id|progressToken|requestId)":\d+/g, '"$1":N')
    .replaceAll(/"version":"\d[^"]*"/g, '"version":"V"');

/** The first message of each method. */
function crossingsOf(upstream: Upstream): Crossings {
  const found: Record<string, Crossing> = {};
  for (const { method, raw, headers } of upstream.seen()) {
    if (method === undefined || raw === undefined || found[method] !== undefined) continue;
    found[method] = {
      ...(headers === undefined || headers.length === 0 ? {} : { headers: headersOf(headers) }),
      body: withoutNumbers(raw),
    };
  }
  return found;
}

const meta = {
  'io.modelcontextprotocol/clientInfo': { name: 'pinned-client', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} }, extensions: { 'vendor/x': {} } },
  'io.modelcontextprotocol/logLevel': 'warning',
  progressToken: 'token',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=t61rcWkgMzE',
  baggage: 'user=a',
  'vendor/key': { one: 1 },
};

async function talk(gateway: Gateway): Promise<void> {
  const ask = async (method: string, params: object) =>
    resultOf(await call(gateway.url, method, { ...params }, { id: 'theirs', meta }));
  await ask('tools/call', { name: 'up__echo', arguments: { a: 1 } });
  await ask('prompts/get', { name: 'up__greet', arguments: { who: 'you' } });
  await ask('resources/read', { uri: 'raw://raw/one' });
  await ask('completion/complete', {
    ref: { type: 'ref/prompt', name: 'up__greet' },
    argument: { name: 'who', value: 'a' },
  });
  await ask('vendor/echo', { name: 'up__echo' });
  const notice = { jsonrpc: '2.0', method: 'notifications/vendor', params: { _meta: meta } };
  await call(gateway.url, notice.method, {}, { body: JSON.stringify(notice) });
  const filter = { notifications: { resourceSubscriptions: ['raw://raw/one'] } };
  const stream = await openCall(gateway.url, 'subscriptions/listen', filter, { meta });
  await stream.next();
  stream.close();
}

describe.each(Object.entries(kinds))('to a server of %s crosses', (name, options) => {
  let upstream: Upstream;
  let gateway: Gateway;
  beforeAll(async () => {
    upstream = await startUpstream(options);
    gateway = await startGateway({ servers: { up: upstream.server } });
    await talk(gateway);
    // What follows a call or a closed listen comes in its own time.
    const last = options.era === 'modern' ? 'notifications/vendor' : 'resources/unsubscribe';
    await vi.waitFor(() => expect(Object.keys(crossingsOf(upstream))).toContain(last), 30_000);
  });
  afterAll(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });

  test('nothing but what is written down here', () => {
    const seen = crossingsOf(upstream);
    expect(Object.keys(seen).toSorted()).toEqual(Object.keys(pins[name] ?? {}).toSorted());
  });

  test.runIf(options.era === 'legacy' && options.transport === 'http')(
    'at the end its session is deleted',
    async () => {
      const ended = await startUpstream(options);
      onTestFinished(() => ended.stop());
      const itsGateway = await startGateway({ servers: { up: ended.server } });
      await talk(itsGateway).finally(() => itsGateway.stop());
      const version = name.slice(0, '2025-11-25'.length);
      expect(crossingsOf(ended)['DELETE']?.headers).toEqual({
        'accept-encoding': 'identity',
        'mcp-session-id': 'ISSUED',
        ...(version >= '2025-06-18' ? { 'mcp-protocol-version': version } : {}),
      });
    },
  );

  test.each(Object.entries(pins[name] ?? {}))('%s as it is written down here', (method, pinned) => {
    expect(crossingsOf(upstream)[method]).toEqual(pinned);
  });
});
