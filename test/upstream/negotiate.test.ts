import { afterEach, describe, expect, test } from 'vitest';
import {
  childScript,
  discovered,
  initialized,
  legacyScript,
  modernScript,
  Refusal,
  type Script,
  type Scripted,
  startScript,
} from '../support/scripted.ts';
import { closeAll, openOne } from './opened.ts';

const endings: (() => unknown)[] = [];
afterEach(async () => {
  await closeAll();
  for (const ending of endings.splice(0)) await ending();
});

async function serve(script: Script): Promise<Scripted> {
  const server = await startScript(script);
  endings.push(() => server.stop());
  return server;
}

function child(code: string) {
  const script = childScript(code);
  endings.push(() => script.stop());
  return script;
}

const eraOf = async (server: object, more?: object): Promise<string> => {
  const { profile } = await openOne({ startTimeout: '20s', ...server }, more).settled();
  return `${profile.dialect.era} ${profile.dialect.version}`;
};

describe('over HTTP', () => {
  test('a modern server is asked once, with all that the modern era wants', async () => {
    const server = await serve(modernScript({}));
    expect(await eraOf(server.server)).toBe('modern 2026-07-28');
    const [asked] = server.seen;
    expect(server.methods().filter((method) => method !== 'subscriptions/listen')).toEqual([
      'server/discover',
    ]);
    expect(asked?.headers).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'server/discover',
      accept: 'application/json, text/event-stream',
    });
    expect(asked?.params).toEqual({
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'gateway', version: '1.0.0' },
        'io.modelcontextprotocol/clientCapabilities': expect.any(Object),
      },
    });
  });

  test('what a server says of itself is kept', async () => {
    const server = await serve(
      modernScript({ 'server/discover': () => ({ ...discovered({ tools: {} }), instructions: 'Be kind.' }) }),
    );
    const { profile } = await openOne(server.server).settled();
    expect(profile).toMatchObject({
      capabilities: { tools: {} },
      instructions: 'Be kind.',
      serverInfo: { name: 'scripted', version: '1.0.0' },
    });
  });

  test.each([
    [
      'refuses the unknown method',
      {
        'server/discover': () => {
          throw new Refusal(-32601, 'no', { status: 404 });
        },
      },
    ],
    [
      'refuses it on HTTP 200',
      {
        'server/discover': () => {
          throw new Refusal(-32601, 'no');
        },
      },
    ],
    [
      'wants a session first',
      {
        'server/discover': () => {
          throw new Refusal(-32000, 'Bad Request: Server not initialized', { status: 400 });
        },
      },
    ],
    [
      'answers 400 without a body',
      { 'server/discover': ({ response }) => void response.writeHead(400).end() },
    ],
    [
      'answers 404 with a page',
      {
        'server/discover': ({ response }) =>
          void response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>no'),
      },
    ],
    ['answers 405', { 'server/discover': ({ response }) => void response.writeHead(405).end() }],
    ['answers a result without versions', { 'server/discover': () => ({ capabilities: {} }) }],
    ['answers with what is no answer', { 'server/discover': ({ send }) => send('{"ok":true}') }],
    [
      'lists no modern version',
      { 'server/discover': () => ({ ...discovered(), supportedVersions: ['2025-11-25'] }) },
    ],
    [
      'says -32022 and lists legacy versions only',
      {
        'server/discover': () => {
          throw new Refusal(-32022, 'no', {
            status: 400,
            data: { supported: ['2025-11-25'], requested: '2026-07-28' },
          });
        },
      },
    ],
  ] as readonly (readonly [string, Script])[])('a server is legacy that %s', async (_, script) => {
    const server = await serve(legacyScript(script));
    expect(await eraOf(server.server)).toBe('legacy 2025-11-25');
    expect(server.methods().slice(0, 3)).toEqual([
      'server/discover',
      'initialize',
      'notifications/initialized',
    ]);
  });

  test('a server of both eras is spoken to in the modern one', async () => {
    const server = await serve(modernScript({ initialize: () => initialized() }));
    expect(await eraOf(server.server)).toBe('modern 2026-07-28');
    expect(server.methods()).not.toContain('initialize');
  });

  test.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])(
    'a legacy server that answers %s is spoken to in that revision, with its header where it has one',
    async (version) => {
      const server = await serve(legacyScript({}, {}, version));
      expect(await eraOf(server.server)).toBe(`legacy ${version}`);
      const notified = server.seen.find(({ method }) => method === 'notifications/initialized');
      expect(notified?.headers['mcp-protocol-version']).toBe(version >= '2025-06-18' ? version : undefined);
      expect(notified?.headers).not.toHaveProperty('mcp-method');
    },
  );

  test('initialize carries the newest legacy revision and no modern _meta', async () => {
    const server = await serve(legacyScript({}));
    await eraOf(server.server);
    const asked = server.seen.find(({ method }) => method === 'initialize');
    expect(asked?.params).toMatchObject({
      protocolVersion: '2025-11-25',
      clientInfo: { name: 'gateway', version: '1.0.0' },
    });
    expect(asked?.params).not.toHaveProperty('_meta');
    expect(asked?.headers).not.toHaveProperty('mcp-method');
  });

  test.each(['2026-07-28', '1.0', 7, undefined])(
    'an answer to initialize with version %j is no answer',
    async (protocolVersion) => {
      const server = await serve({ initialize: () => ({ ...initialized(), protocolVersion }) });
      await expect(eraOf(server.server)).rejects.toThrow(/protocol version/);
    },
  );

  const page = ({ response }: Parameters<Script[string]>[0], status: number): void =>
    void response.writeHead(status, { 'content-type': 'text/plain' }).end('later');
  test.each([401, 403, 429, 500, 502, 503])(
    'HTTP %i on the probe says nothing about the era, so initialize is not sent',
    async (status) => {
      const server = await serve(legacyScript({ 'server/discover': (asked) => page(asked, status) }));
      await expect(eraOf(server.server)).rejects.toThrow(String(status));
      expect(server.methods()).not.toContain('initialize');
    },
  );

  test.each([401, 403, 429, 503])(
    'HTTP %i on the probe says nothing about the era with a JSON-RPC error in its body either',
    async (status) => {
      const server = await serve(
        legacyScript({
          'server/discover': () => {
            throw new Refusal(-32001, 'Come back with a token', { status });
          },
        }),
      );
      await expect(eraOf(server.server)).rejects.toThrow('Come back with a token');
      expect(server.methods()).not.toContain('initialize');
    },
  );

  test.each([
    ['-32020, where something took the headers away', -32020, undefined],
    ['-32021, where it wants more of its clients', -32021, { requiredCapabilities: { sampling: {} } }],
    ['-32022 while it lists the version that it was asked in', -32022, { supported: ['2026-07-28'] }],
    ['-32022 and lists a later revision only', -32022, { supported: ['2099-01-01'] }],
  ])('a server that answers %s is modern, and never told to initialize', async (_, code, data) => {
    const server = await serve(
      legacyScript({
        'server/discover': () => {
          throw new Refusal(code, 'not like this', { status: 400, data });
        },
      }),
    );
    await expect(eraOf(server.server)).rejects.toThrow();
    expect(server.methods()).not.toContain('initialize');
  });

  test('a server that does not answer the probe in time is down, not legacy', async () => {
    const server = await serve(legacyScript({ 'server/discover': () => undefined }));
    await expect(eraOf({ ...server.server, startTimeout: '300ms' })).rejects.toThrow(/server\/discover/);
    expect(server.methods()).not.toContain('initialize');
  });

  test('a server that is not there is down, with the reason', async () => {
    const server = await serve({});
    await server.stop();
    await expect(eraOf(server.server)).rejects.toThrow(/ECONNREFUSED/);
  });
});

describe('over stdio', () => {
  test('a modern child is asked once', async () => {
    const { server, methods } = child("on['server/discover'] = ({ reply }) => reply(discovered);");
    expect(await eraOf(server)).toBe('modern 2026-07-28');
    expect(methods()).toEqual(['server/discover']);
  });

  test.each([-32601, -32602, -32600, -32000, -32700])(
    'a child that refuses the probe with %i is legacy, and the same process goes on',
    async (code) => {
      const { server, methods, starts } = child(`
        on['server/discover'] = ({ fail }) => fail(${code}, 'no');
        on.initialize = ({ reply }) => reply(initialized);`);
      expect(await eraOf(server)).toBe('legacy 2025-11-25');
      await expect.poll(methods).toEqual(['server/discover', 'initialize', 'notifications/initialized']);
      expect(starts()).toBe(1);
    },
  );

  test('a child of both eras is spoken to in the modern one', async () => {
    const { server, methods } = child(`
      on['server/discover'] = ({ reply }) => reply(discovered);
      on.initialize = ({ reply }) => reply(initialized);`);
    expect(await eraOf(server)).toBe('modern 2026-07-28');
    expect(methods()).not.toContain('initialize');
  });

  test('a child that exits on the probe is legacy: the next one hears initialize first', async () => {
    const { server, methods, starts } = child(`
      on['server/discover'] = () => process.exit(1);
      on.initialize = ({ reply }) => reply(initialized);`);
    const opened = openOne(server);
    const { profile } = await opened.settled();
    expect(profile.dialect.era).toBe('legacy');
    await expect.poll(methods).toEqual(['server/discover', 'initialize', 'notifications/initialized']);
    expect(starts()).toBe(2);
    expect(opened.told).not.toContainEqual(expect.stringMatching(/^down/));
  });

  test('a child that exits whatever it hears is down, with its last words', async () => {
    const { server } = child("console.error('no database'); process.exit(3);");
    await expect(eraOf(server)).rejects.toThrow(/code 3.*no database/);
  });

  test('a modern child that fell on its first start is asked again, not told to initialize for ever', async () => {
    const { server } = child(`
      const { readFileSync } = await import('node:fs');
      if (readFileSync(starts, 'utf8').length === 1) process.exit(1);
      on['server/discover'] = ({ reply }) => reply(discovered);`);
    const { upstream } = openOne({ ...server, startTimeout: '2s' });
    await expect.poll(() => upstream.live?.profile.dialect.era).toBe('modern');
  });

  test('a child that says nothing to the probe hears initialize after a while', async () => {
    const { server, methods } = child(`
      on['server/discover'] = () => {};
      on.initialize = ({ reply }) => reply(initialized);`);
    expect(await eraOf(server)).toBe('legacy 2025-11-25');
    expect(methods().slice(0, 2)).toEqual(['server/discover', 'initialize']);
  });

  // Both have heard `initialize` when they answer, 2 s after the probe at the latest.
  test('a modern child that starts slowly is modern still', async () => {
    const { server } = child(`
      const asked = new Promise((resolve) => {
        on.initialize = async ({ fail }) => { resolve(); await sleep(300); fail(-32601, 'Method not found'); };
      });
      on['server/discover'] = async ({ reply }) => { await asked; reply(discovered); };`);
    expect(await eraOf(server)).toBe('modern 2026-07-28');
  });

  test('a child of both eras that starts slowly stays in the era that it settled on', async () => {
    const { server } = child(`
      const asked = new Promise((resolve) => {
        on.initialize = async ({ reply }) => { resolve(); await sleep(300); reply(initialized); };
      });
      on['server/discover'] = async ({ reply }) => { await asked; reply(discovered); };`);
    expect(await eraOf(server)).toBe('legacy 2025-11-25');
  });

  test('a child that never answers anything is down when its time is over', async () => {
    const { server } = child("on['server/discover'] = () => {}; on.initialize = () => {};");
    await expect(eraOf({ ...server, startTimeout: '900ms' })).rejects.toThrow(/did not answer/);
  });

  test('a child that says other things instead is down with the first of them', async () => {
    // A shell, which has said so long before its time is over.
    const script = `echo 'Listening on stdio'; echo '{"level":"info"}'; while read -r _; do :; done`;
    await expect(eraOf({ command: ['sh', '-c', script], startTimeout: '900ms' })).rejects.toThrow(
      /did not answer .* within 900 ms; its stdout held what is no JSON-RPC, first of all: Listening on stdio$/,
    );
  });

  test('a child that says other things and exits is down with both', async () => {
    const { server } = child(
      "console.log('Usage: server FILE'); process.exitCode = 2; process.stdin.destroy();",
    );
    await expect(eraOf(server)).rejects.toThrow(
      /exited with code 2; its stdout held what is no JSON-RPC, first of all: Usage: server FILE$/,
    );
  });

  test('what a child says beside its refusal is not to blame', async () => {
    const { server } = child(`
      console.log('Listening on stdio');
      on['server/discover'] = ({ fail }) => fail(-32601, 'no');
      on.initialize = ({ fail }) => fail(-32603, 'no database');`);
    await expect(eraOf(server)).rejects.toThrow(/^no database$/);
  });

  test('initialize is never cancelled, since no revision allows it', async () => {
    const { server, methods } = child(
      "on['server/discover'] = ({ fail }) => fail(-32601, 'no'); on.initialize = () => {};",
    );
    await expect(eraOf({ ...server, startTimeout: '500ms' })).rejects.toThrow();
    expect(methods()).not.toContain('notifications/cancelled');
  });

  test('a program that is not there is down, not legacy', async () => {
    await expect(eraOf({ command: ['/no/such/program'] })).rejects.toThrow(/no\/such\/program/);
  });
});
