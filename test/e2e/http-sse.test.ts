/** The real server-everything in its HTTP+SSE mode (2024-11-05), behind the gateway. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { call, callTool, openCall, resultOf, textOf } from '../support/modern-client.ts';
import { ownPort } from '../support/port.ts';
import { endChild } from '../support/upstream.ts';

const program = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
);

async function everything(port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, [program, 'sse'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  // Read to the end: a server whose stderr is closed dies of its next word.
  await new Promise<void>((resolve) => {
    child.stderr.on('data', (chunk: Buffer) => {
      if (chunk.includes('is running on port')) resolve();
    });
  });
  return child;
}

describe('the real server-everything over HTTP+SSE', () => {
  let port: number;
  let server: ChildProcess;
  let gateway: Gateway;

  beforeAll(async () => {
    // It can't pick one itself.
    port = await ownPort();
    server = await everything(port);
    gateway = await startGateway({ servers: { everything: { url: `http://127.0.0.1:${port}/sse` } } });
  });
  afterAll(async () => {
    await gateway?.stop();
    if (server !== undefined) await endChild(server);
  });

  const health = () => gateway.app.health()[0];

  test('is found without being told that it speaks HTTP+SSE', () => {
    expect(health()).toMatchObject({ state: 'up', era: 'legacy', version: '2025-11-25', transport: 'sse' });
  });

  test('lists its tools, prompts and resources', async () => {
    const names = async (method: string, key: string): Promise<unknown[]> =>
      (resultOf(await call(gateway.url, method))[key] as { name: string }[]).map(({ name }) => name);
    // Some of its tools come only after the handshake.
    await expect
      .poll(() => names('tools/list', 'tools'))
      .toEqual(expect.arrayContaining(['everything__echo', 'everything__trigger-sampling-request']));
    expect(await names('prompts/list', 'prompts')).toContain('everything__args-prompt');
    expect(await names('resources/list', 'resources')).toContain('architecture.md');
  });

  test('answers calls, many at once, each with its own', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        callTool(gateway.url, 'everything__echo', { message: `grüß ${index}` }),
      ),
    );
    expect(answers.map(textOf)).toEqual(answers.map((_, index) => `Echo: grüß ${index}`));
  });

  test("tells of progress by the client's own token", async () => {
    const answer = await callTool(
      gateway.url,
      'everything__trigger-long-running-operation',
      { duration: 0.3, steps: 3 },
      { meta: { progressToken: 'mine' } },
    );
    expect(
      answer.notifications.map(({ params }) => [params?.['progressToken'], params?.['progress']]),
    ).toEqual([
      ['mine', 1],
      ['mine', 2],
      ['mine', 3],
    ]);
    expect(textOf(answer)).toContain('completed');
  });

  test('asks its caller for a sampling, on the one stream', async () => {
    const capabilities = { 'io.modelcontextprotocol/clientCapabilities': { sampling: {} } };
    const params = { name: 'everything__trigger-sampling-request', arguments: { prompt: 'Say hi' } };
    const asked = resultOf(await call(gateway.url, 'tools/call', params, { meta: capabilities }));
    const [key = ''] = Object.keys(asked['inputRequests'] as object);
    expect(asked['inputRequests']).toMatchObject({ [key]: { method: 'sampling/createMessage' } });
    const content = { type: 'text', text: 'hi there' };
    const inputResponses = { [key]: { role: 'assistant', model: 'm', content } };
    const retry = { ...params, inputResponses, requestState: asked['requestState'] };
    expect(textOf(await call(gateway.url, 'tools/call', retry, { meta: capabilities }))).toContain(
      'hi there',
    );
  });

  test('is found again after a restart, and a call that was open says that it was lost', async () => {
    const params = {
      name: 'everything__trigger-long-running-operation',
      arguments: { duration: 60, steps: 600 },
    };
    const open = await openCall(gateway.url, 'tools/call', params, { meta: { progressToken: 1 } });
    expect((await open.next()).method).toBe('notifications/progress');
    await endChild(server);
    expect((await open.done).response?.error?.code).toBe(5021);
    server = await everything(port);
    await expect.poll(() => health()?.state).toBe('up');
    expect(health()).toMatchObject({ transport: 'sse' });
    expect(textOf(await callTool(gateway.url, 'everything__echo', { message: 'again' }))).toBe('Echo: again');
  });
});
