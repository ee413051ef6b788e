import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { createFolder, start } from '../cli/program.ts';
import { callTool, textOf } from '../support/modern-client.ts';

const pem = (name: string): string => fileURLToPath(new URL(`../support/tls/${name}.pem`, import.meta.url));

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

const capabilities = { tools: {} };
const serverInfo = { name: 'over-tls', version: '1' };
const long = 'x'.repeat(600_000);

function resultOf(method: string): object {
  if (method === 'server/discover')
    return { supportedVersions: ['2026-07-28'], capabilities, serverInfo, ttlMs: 0, cacheScope: 'public' };
  if (method === 'tools/list')
    return { tools: [{ name: 'long', inputSchema: { type: 'object' } }], ttlMs: 0, cacheScope: 'public' };
  return { content: [{ type: 'text', text: long }] };
}

/** A modern server over TLS, and how many connections it was called on. */
async function serveTls() {
  let connections = 0;
  const server = createServer(
    { cert: readFileSync(pem('first.cert')), key: readFileSync(pem('first.key')) },
    (request, response) => {
      void text(request).then((body) => {
        const { id, method } = JSON.parse(body) as { id: unknown; method: string };
        response.setHeader('content-type', 'application/json');
        response.end(
          JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...resultOf(method) } }),
        );
      });
    },
  );
  server.on('secureConnection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(
    () => server.close(),
    () => server.closeAllConnections(),
  );
  const { port } = server.address() as AddressInfo;
  return { url: `https://localhost:${port}/mcp`, connections: () => connections };
}

async function serveWith(url: string, env: Readonly<Record<string, string>>) {
  const folder = createFolder({
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    servers: { far: { url } },
  });
  cleanups.push(folder.remove);
  const program = start(['serve', '-c', folder.file], { cwd: folder.folder, env });
  cleanups.push(async () => {
    program.child.kill('SIGTERM');
    await program.ended;
  });
  return { program, folder };
}

test('a server over TLS whose certificate is trusted is called, and its connection is used again', async () => {
  const { url, connections } = await serveTls();
  const { program } = await serveWith(url, { NODE_EXTRA_CA_CERTS: pem('first.cert') });
  await program.said(/far: up/);
  const endpoint = /serving (\S+)/.exec(await program.said(/serving/))?.[1] ?? '';
  const before = connections();
  // One right after the other: it is kept for some seconds.
  for (let count = 0; count < 3; count += 1)
    expect(textOf(await callTool(endpoint, 'far__long')) === long).toBe(true);
  expect(connections() - before).toBeLessThanOrEqual(1);
});

test('a server over TLS whose certificate nobody vouches for is down, and says why', async () => {
  const { url, connections } = await serveTls();
  const { program } = await serveWith(url, {});
  expect(await program.said(/far: down|far: .*not/)).toMatch(
    /no connection \((DEPTH_ZERO_)?SELF_SIGNED_CERT\)|certificate/i,
  );
  expect(connections()).toBe(0);
});
