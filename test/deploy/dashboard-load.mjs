/** What a gateway's clients do, right and wrong, so that every metric has something to tell. */
import { setTimeout as delay } from 'node:timers/promises';

const version = '2026-07-28';
const loops = 4;
const meta = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientInfo': { name: 'load', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** Sends one request and reads its answer to the end, whatever it is. */
async function send(endpoint, key, method, params = {}, headers = {}, signal = undefined) {
  const name = params.name ?? params.uri;
  const response = await fetch(endpoint, {
    method: 'POST',
    signal: signal ?? null,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${key}`,
      'mcp-protocol-version': version,
      'mcp-method': method,
      ...(name === undefined ? {} : { 'mcp-name': name }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  });
  await response.text();
}

/** A session of an older revision, from its begin to its end. */
async function session(endpoint, key) {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${key}`,
  };
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'load', version: '1.0.0' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const begun = await fetch(endpoint, { method: 'POST', headers, body });
  await begun.text();
  const own = {
    ...headers,
    'mcp-session-id': begun.headers.get('mcp-session-id'),
    'mcp-protocol-version': params.protocolVersion,
  };
  const list = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'far__echo' } });
  await (await fetch(endpoint, { method: 'POST', headers: own, body: list })).text();
  await (await fetch(endpoint, { method: 'DELETE', headers: own })).text();
}

const call = (name, args = {}) => ['tools/call', { name, arguments: args }];

const rounds = [
  ['tools/list'],
  ['prompts/list'],
  ['resources/list'],
  ['server/discover'],
  call('one__echo', { text: 'hello' }),
  call('far__echo', { text: 'hello' }),
  call('far__slow', { ms: 30 }),
  call('flaky__echo', { text: 'hello' }),
  call('one__soft', { text: 'no' }),
  call('one__fail', { code: -32603 }),
  call('one__nothing'),
  call('one__progress', { steps: 2 }),
  call('one__announce', { what: 'tools' }),
];

/** Sends until it is told to stop; `stop` resolves with the count of requests. */
export function startLoad(endpoint, key) {
  const stopped = new AbortController();
  let sent = 0;
  const one = async (...args) => {
    sent += 1;
    await send(endpoint, key, ...args).catch(() => undefined);
  };
  const loop = async () => {
    while (!stopped.signal.aborted) {
      for (const round of rounds) await one(...round);
      await one('tools/list', {}, { 'mcp-method': 'prompts/list' });
      await one('tools/list', {}, { authorization: 'Bearer of bad news' });
      await one(...call('one__echo', { text: 'x'.repeat(100_000) }));
      sent += 4;
      await session(endpoint, key).catch(() => undefined);
      await fetch(new URL('/servers/far/files/one', endpoint), {
        headers: { authorization: `Bearer ${key}` },
      })
        .then((response) => response.text())
        .catch(() => undefined);
      await delay(20);
    }
  };
  const listen = async () => {
    while (!stopped.signal.aborted) {
      const params = { notifications: { toolsListChanged: true } };
      await one('subscriptions/listen', params, {}, stopped.signal);
      await delay(500);
    }
  };
  const running = [listen(), ...Array.from({ length: loops }, loop)];
  return {
    async stop() {
      stopped.abort();
      await Promise.all(running);
      return sent;
    },
  };
}
