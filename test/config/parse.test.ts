import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ServerConfig } from '../../src/config/config.ts';
import { complaintsIn, parse } from './parse-fixture.ts';

const serverOf = (text: string, env = {}): ServerConfig => {
  const [server] = parse(`servers:\n  one: ${text}`, { env }).servers;
  if (server === undefined) throw new Error('no server is in use');
  return server;
};

describe('an empty config', () => {
  test.each(['', '# nothing\n', '{}', 'limits:\nservers:\nnames:\n'])('%j has every default', (text) => {
    expect(parse(text)).toEqual({
      listen: { host: '127.0.0.1', port: 8808 },
      admin: { host: '127.0.0.1', port: 9808 },
      hosts: ['localhost', '127.0.0.1', '[::1]'],
      origins: [],
      trustedProxies: [],
      keys: {},
      auth: 'none',
      metrics: {},
      legacySse: false,
      workers: 1,
      names: { separator: '__', max: 50 },
      lists: { deadlineMs: 5000, pageSize: 1000 },
      cache: { defaultTtlMs: 60_000, bytesMax: 64 * 1024 ** 2 },
      probe: { intervalMs: 30_000, timeoutMs: 10_000 },
      limits: {
        bodyBytesMax: 8 * 1024 ** 2,
        bodiesBytesMax: 256 * 1024 ** 2,
        holdBytes: 256 * 1024,
        resultBytesMax: 64 * 1024 ** 2,
        callsInFlightMax: 10_000,
        instancesMax: 50,
        listenStreamsMax: 20_000,
        pagesMax: 100,
        listItemsMax: 10_000,
        nestingMax: 128,
        sseBufferBytesMax: 4 * 1024 ** 2,
      },
      log: { level: 'info', calls: 'errors' },
      servers: [],
      disabled: [],
      warnings: ['servers: none is in use'],
      secrets: [],
      file: '/etc/mcpyard/config.yaml',
      directory: '/etc/mcpyard',
    });
  });
});

test('a server with nothing but a command has every default', () => {
  expect(serverOf('{ command: npx -y thing }')).toEqual({
    name: 'one',
    prefix: 'one__',
    tools: { deny: [], rename: {} },
    isolation: 'shared',
    roots: [],
    startTimeoutMs: 30_000,
    timeoutMs: 300_000,
    maxTimeoutMs: 3_600_000,
    retry: 'off',
    restart: { initialMs: 250, maxMs: 60_000, stableMs: 10_000 },
    concurrency: { max: 1000, queueMax: 1000, queueMs: 30_000 },
    breaker: { failures: 10, cooldownMs: 1000, cooldownMaxMs: 30_000 },
    passthrough: [],
    passthroughHeaders: false,
    target: { kind: 'stdio', command: 'npx', args: ['-y', 'thing'], env: {}, cwd: '/etc/mcpyard' },
  });
});

test('a config that sets everything comes out as it was set', () => {
  const config = parse(`
listen: "[::1]:1"
admin: localhost:2
hosts: [Example.com, "::1"]
origins: [https://App.example.com]
publicUrl: https://mcp.example.com/mcp
trustedProxies: [10.0.0.0/8, ::1]
stateDir: state
secret: 0123456789abcdef0123456789abcdef
legacySse: true
workers: 4
names: { separator: ., max: 64 }
lists: { deadline: 2500ms, pageSize: 10 }
cache: { defaultTtl: 0s, max: 1GiB }
probe: { interval: 1h, timeout: 5s }
drainTimeout: 3s
limits:
  { body: 1B, holdBytes: 2KiB, result: 3MiB, callsInFlight: 4, instances: 11, listenStreams: 5, pages: 6, listItems: 7,
    nesting: 8, sseBuffer: 9GiB }
log: { level: trace, calls: all }
servers:
  web:
    url: https://example.com/mcp?x=1
    headers: { X-One: "1" }
    transport: streamable-http
    enabled: true
    prefix: w
    tools: { allow: [a*], deny: [ab], rename: { ac: c } }
    isolation: caller
    roots: [src, file:///tmp]
    startTimeout: 1s
    timeout: 2s
    maxTimeout: 3s
    idleTimeout: 4s
    retry: idempotent
    restart: { initial: 1s, max: 2s, stable: 3s }
    concurrency: { max: 5, queue: 0, queueTimeout: 6s }
    breaker: { failures: 0, cooldown: 7s, maxCooldown: 8s }
    passthrough: [/files]
`);
  expect(config).toMatchObject({
    listen: { host: '::1', port: 1 },
    admin: { host: 'localhost', port: 2 },
    hosts: ['example.com', '[::1]'],
    origins: ['https://app.example.com'],
    publicUrl: 'https://mcp.example.com/mcp',
    trustedProxies: ['10.0.0.0/8', '::1'],
    stateDir: '/etc/mcpyard/state',
    secret: '0123456789abcdef0123456789abcdef',
    legacySse: true,
    workers: 4,
    names: { separator: '.', max: 64 },
    lists: { deadlineMs: 2500, pageSize: 10 },
    cache: { defaultTtlMs: 0, bytesMax: 1024 ** 3 },
    probe: { intervalMs: 3_600_000, timeoutMs: 5000 },
    drainTimeoutMs: 3000,
    limits: {
      bodyBytesMax: 1,
      holdBytes: 2048,
      resultBytesMax: 3 * 1024 ** 2,
      callsInFlightMax: 4,
      instancesMax: 11,
      listenStreamsMax: 5,
      pagesMax: 6,
      listItemsMax: 7,
      nestingMax: 8,
      sseBufferBytesMax: 9 * 1024 ** 3,
    },
    log: { level: 'trace', calls: 'all' },
  });
  expect(config.servers).toEqual([
    {
      name: 'web',
      prefix: 'w.',
      tools: { allow: ['a*'], deny: ['ab'], rename: { ac: 'c' } },
      isolation: 'caller',
      roots: ['file:///etc/mcpyard/src', 'file:///tmp'],
      startTimeoutMs: 1000,
      timeoutMs: 2000,
      maxTimeoutMs: 3000,
      idleTimeoutMs: 4000,
      retry: 'idempotent',
      restart: { initialMs: 1000, maxMs: 2000, stableMs: 3000 },
      concurrency: { max: 5, queueMax: 0, queueMs: 6000 },
      breaker: { failures: 0, cooldownMs: 7000, cooldownMaxMs: 8000 },
      passthrough: ['/files'],
      passthroughHeaders: false,
      target: {
        kind: 'http',
        url: new URL('https://example.com/mcp?x=1'),
        headers: { 'X-One': '1' },
        transport: 'streamable-http',
      },
    },
  ]);
});

test('servers keep the order of the file, whatever their names', () => {
  const { servers } = parse(
    'servers: { b: { command: x }, 10: { command: x }, a: { command: x }, 2: { command: x } }',
  );
  expect(servers.map(({ name }) => name)).toEqual(['b', '10', 'a', '2']);
});

test('an empty prefix drops the separator too', () => {
  expect(serverOf('{ command: x, prefix: "" }').prefix).toBe('');
});

describe('a command', () => {
  test.each([
    ['{ command: [a b, "", "$HOME", "*"] }', ['a b', '', '$HOME', '*']],
    ['{ command: my program, args: ["a b", "c\'d"] }', ['my program', 'a b', "c'd"]],
    ['{ command: a, args: [] }', ['a']],
    [`{ command: "a 'b c' d" }`, ['a', 'b c', 'd']],
    ['{ command: [node_modules/.bin/x] }', ['/etc/mcpyard/node_modules/.bin/x']],
    ['{ command: ./x ./y, cwd: /srv }', ['/etc/mcpyard/x', './y']],
    ['{ command: /bin/x }', ['/bin/x']],
  ])('%s runs %j', (text, argv) => {
    expect(serverOf(text).target).toMatchObject({ command: argv[0], args: argv.slice(1) });
  });

  test.each([
    ['{ command: x }', '/etc/mcpyard'],
    ['{ command: x, cwd: sub/dir }', '/etc/mcpyard/sub/dir'],
    ['{ command: x, cwd: .. }', '/etc'],
    ['{ command: x, cwd: /srv }', '/srv'],
  ])('%s runs in %s', (text, cwd) => expect(serverOf(text).target).toMatchObject({ cwd }));

  test('takes a value that is filled in as part of one word', () => {
    const { target } = serverOf(`{ command: "run --token=\${T} \${NONE:-a b}" }`, { T: `x "y' z` });
    expect(target).toMatchObject({ command: 'run', args: [`--token=x "y' z`, 'a b'] });
  });

  test('as a list is any argv, verbatim', () => {
    const argument = fc.string({ unit: 'binary' }).filter((text) => !/\0|\$\{/.test(text));
    fc.assert(
      fc.property(fc.array(argument), (args) => {
        const text = JSON.stringify({ servers: { one: { command: ['x', ...args] } } });
        const [server] = parse(text).servers;
        expect(server?.target).toMatchObject({ command: 'x', args });
      }),
    );
  });
});

describe('timeouts', () => {
  test('one that is left out follows the other', () => {
    expect(serverOf('{ command: x, timeout: 2h }')).toMatchObject({
      timeoutMs: 7_200_000,
      maxTimeoutMs: 7_200_000,
    });
    expect(serverOf('{ command: x, maxTimeout: 1m }')).toMatchObject({
      timeoutMs: 60_000,
      maxTimeoutMs: 60_000,
    });
  });

  test('an idle timeout may be off', () => {
    expect(serverOf('{ command: x, idleTimeout: off }')).not.toHaveProperty('idleTimeoutMs');
  });
});

describe('a server that is switched off', () => {
  test('is listed with the reason, even where its values are missing', () => {
    const { servers, disabled } = parse(`servers:
  off: { url: "\${NONE}", enabled: false }
  on: { command: x }`);
    expect(servers.map(({ name }) => name)).toEqual(['on']);
    expect(disabled).toEqual([
      { name: 'off', kind: 'off', reason: 'it is switched off in the config (`enabled: false`)' },
    ]);
  });

  test('is checked all the same', () => {
    expect(complaintsIn('servers: { off: { command: x, enabled: false, bogus: 1 } }')).toHaveLength(1);
  });
});

describe('a variable that is not set', () => {
  test('disables the server that needs it, and says where', () => {
    const { servers, disabled } = parse(`servers:
  github:
    url: https://example.com
    headers:
      Authorization: Bearer \${TOKEN}
  files: { command: "\${BIN}", args: ["\${file:/run/none}"] }
  fine: { command: x }`);
    expect(servers.map(({ name }) => name)).toEqual(['fine']);
    expect(disabled).toEqual([
      {
        name: 'github',
        kind: 'unfilled',
        reason: 'the variable TOKEN is not set (config.yaml:5:22 servers.github.headers.Authorization)',
      },
      {
        name: 'files',
        kind: 'unfilled',
        reason:
          "the variable BIN is not set (config.yaml:6:21 servers.files.command); the file /run/none can't be read (ENOENT) (config.yaml:6:38 servers.files.args[0])",
      },
    ]);
  });

  test.each([
    `url: "\${X}"`,
    `command: "\${X}"`,
    `command: ["\${X}"]`,
    `command: a, timeout: "\${X}"`,
    `command: a, tools: { allow: ["\${X}"] }`,
  ])('in %s disables the server and is no other mistake', (keys) =>
    expect(parse(`servers: { a: { ${keys} } }`).disabled).toMatchObject([{ name: 'a', kind: 'unfilled' }]),
  );

  test('hides no mistake of another key of that server', () => {
    expect(complaintsIn(`servers: { a: { url: "\${X}", timeot: "\${X}", timeout: soon } }`)).toEqual([
      expect.stringContaining('timeot: unknown key'),
      expect.stringContaining('timeout: expected a duration'),
    ]);
  });

  test('is an error anywhere else, and the only one about that value', () => {
    expect(complaintsIn(`listen: "\${X}"\nlog: { level: "\${X}" }\nsecret: "\${file:/run/none}"`)).toEqual([
      'config.yaml:1:9 listen: the variable X is not set',
      'config.yaml:2:15 log.level: the variable X is not set',
      "config.yaml:3:9 secret: the file /run/none can't be read (ENOENT)",
    ]);
  });
});

describe('what is filled in', () => {
  test('is not read again, neither as YAML nor for references', () => {
    const env = { X: `\${Y}: [1, 2]\nfoo: bar` };
    expect(serverOf(`{ command: [x, "\${X}"] }`, env).target).toMatchObject({
      args: [`\${Y}: [1, 2]\nfoo: bar`],
    });
    expect(complaintsIn(`limits: { pages: "\${X}" }`, { env: { X: '5' } })).toHaveLength(1);
  });

  test('may be any part of the config that is a string', () => {
    const env = { PORT: '99', LEVEL: 'warn', T: '7s', NONE: undefined };
    const config = parse(
      `listen: 127.0.0.1:\${PORT}\nlog: { level: "\${LEVEL}" }\nprobe: { interval: "\${T}" }`,
      { env },
    );
    expect(config).toMatchObject({
      listen: { port: 99 },
      log: { level: 'warn', calls: 'errors' },
      probe: { intervalMs: 7000 },
    });
  });

  test('from a relative file is looked for in the folder of the config', () => {
    const files = { '/etc/mcpyard/token': 'abc\n' };
    const { servers } = parse(`servers: { a: { command: [x, "\${file:token}"] } }`, { files });
    expect(servers[0]?.target).toMatchObject({ args: ['abc'] });
  });

  test('a file that is named twice is read once', () => {
    let reads = 0;
    const files = {
      get '/k'() {
        reads += 1;
        return 'v';
      },
    };
    parse(`servers: { a: { command: "x \${file:/k} \${file:/k}" } }`, { files });
    expect(reads).toBe(1);
  });
});

describe('a warning', () => {
  test('is not told where it is set to its default', () => {
    const text = `trustedProxies: []
servers:
  x: { command: a, isolation: shared, roots: [], idleTimeout: off }
  y: { url: "http://a", passthrough: [], transport: auto }`;
    expect(parse(text).warnings).toEqual([]);
  });
});

test('a short secret and the operators of a shell are worth a warning', () => {
  expect(parse('secret: hunter2\nservers: { x: { command: a && b } }').warnings).toEqual([
    'secret: has fewer than 32 characters, so it may be guessed',
    'servers.x.command: `&&` reaches the program as it is, since there is no shell',
  ]);
});

test('a config written as JSON by a program is read', () => {
  const text = JSON.stringify(
    {
      listen: '127.0.0.1:4001',
      admin: '127.0.0.1:0',
      lists: { deadline: '2500ms' },
      probe: { interval: '400ms' },
      servers: {
        kid: {
          command: [
            '/usr/bin/node',
            '/a b/up.mjs',
            '--mode',
            `\${MODE:-fallback}`,
            'cost $5',
            'café\\n',
            '😀',
          ],
          env: { LOG: '/tmp/x' },
          cwd: '/tmp',
          startTimeout: '2500ms',
          timeout: '20000ms',
        },
        web: {
          url: 'http://127.0.0.1:4002/mcp',
          headers: { authorization: 'Bearer own' },
          timeout: '20000ms',
        },
      },
    },
    null,
    '\t',
  );
  const { servers, lists, probe, warnings } = parse(text);
  expect({ lists, probe, warnings }).toEqual({
    lists: { deadlineMs: 2500, pageSize: 1000 },
    probe: { intervalMs: 400, timeoutMs: 10_000 },
    warnings: [],
  });
  expect(servers.map(({ target }) => target)).toEqual([
    {
      kind: 'stdio',
      command: '/usr/bin/node',
      args: ['/a b/up.mjs', '--mode', 'fallback', 'cost $5', 'café\\n', '😀'],
      env: { LOG: '/tmp/x' },
      cwd: '/tmp',
    },
    {
      kind: 'http',
      url: new URL('http://127.0.0.1:4002/mcp'),
      headers: { authorization: 'Bearer own' },
      transport: 'auto',
    },
  ]);
});
