import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/errors.ts';
import { complaintsIn, parse } from './parse-fixture.ts';

test('all mistakes of a file are told at once, each with its place', () => {
  const text = `listen: 8808
lits: { deadline: 5s }
servers:
  github:
    url: ftp://example.com
    timeot: 5s
    headers: { Authorization: 5 }
  files:
    command: [node, 1]
    timeout: 5 minutes
`;
  expect(complaintsIn(text)).toEqual([
    'config.yaml:1:9 listen: expected HOST:PORT, such as 127.0.0.1:8808 or [::1]:8808, found a number',
    'config.yaml:2:1 lits: unknown key; did you mean `lists`?',
    'config.yaml:5:10 servers.github.url: expected an http:// or https:// URL',
    'config.yaml:6:5 servers.github.timeot: unknown key; did you mean `timeout`?',
    'config.yaml:7:31 servers.github.headers.Authorization: expected a string, found a number: put it in quotes',
    'config.yaml:9:21 servers.files.command[1]: expected a string, found a number: put it in quotes',
    'config.yaml:10:14 servers.files.timeout: expected a duration such as 500ms, 30s, 5m or 1h, from 1 ms to 596 hours',
  ]);
});

test('an error has its issues as data too', () => {
  try {
    parse('a: 1\nb: 2');
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).issues.map(({ line, column, path }) => [line, column, path])).toEqual([
      [1, 1, 'a'],
      [2, 1, 'b'],
    ]);
  }
});

describe('one mistake', () => {
  test.each([
    ['- a', '1:1 expected a map, found a list'],
    ['just text', '1:1 expected a map, found a string'],
    ['zzz: 1', /^1:1 zzz: unknown key; known here: listen, admin, .*servers$/],
    ['mcpServers: {}', '1:1 mcpServers: unknown key; did you mean `servers`?'],
    ['names: { separater: _ }', '1:10 names.separater: unknown key; did you mean `separator`?'],
    ['names: { separator: "/" }', /^1:21 names\.separator: expected up to 16 letters/],
    ['names: { max: 12 }', '1:15 names.max: expected a whole number from 24 to 128'],
    ['names: { max: 50.5 }', '1:15 names.max: expected a whole number from 24 to 128'],
    ['names: { max: "50" }', '1:15 names.max: expected a number, found a string'],
    ['workers: 0', '1:10 workers: expected a whole number from 1 to 64, or auto'],
    ['workers: 65', '1:10 workers: expected a whole number from 1 to 64, or auto'],
    ['workers: all', '1:10 workers: expected a whole number from 1 to 64, or auto'],
    ['workers: [2]', '1:10 workers: expected a whole number from 1 to 64, or auto'],
    ['limits: { pages: 0 }', /^1:18 limits\.pages: expected a whole number from 1 to/],
    ['limits: 5', '1:9 limits: expected a map, found a number'],
    ['limits: { body: 8MB }', '1:17 limits.body: expected a size such as 64KiB, 4MiB or 1GiB'],
    ['limits: { body: 0MiB }', '1:17 limits.body: expected a size such as 64KiB, 4MiB or 1GiB'],
    ['lists: { deadline: 0s }', /^1:20 lists\.deadline: expected a duration/],
    ['lists: { deadline: 30d }', /^1:20 lists\.deadline: expected a duration/],
    ['probe: { interval: 600h }', /^1:20 probe\.interval: expected a duration .* to 596 hours/],
    ['drainTimeout: 5', /^1:15 drainTimeout: expected a duration such as 500ms, 30s, .*, found a number$/],
    ['drainTimeout: "5"', /^1:15 drainTimeout: expected a duration such as 500ms, 30s, .* 596 hours$/],
    ['lists: { deadline: }', /^1:20 lists\.deadline: expected a duration .*, found nothing$/],
    [
      'servers: { a: { command: x, idleTimeout: false } }',
      /^1:42 servers\.a\.idleTimeout: expected a duration .*, or off, found false$/,
    ],
    [
      'limits: { body: 1048576 }',
      '1:17 limits.body: expected a size such as 64KiB, 4MiB or 1GiB, found a number',
    ],
    ['probe: { interval: off }', /^1:20 probe\.interval: expected a duration/],
    [
      'log: { level: loud }',
      '1:15 log.level: expected one of trace, debug, info, warn, error, fatal, silent',
    ],
    ['hosts: a', '1:8 hosts: expected a list, found a string'],
    ['hosts: ["a:80"]', '1:9 hosts[0]: expected a host name or an IP address, without a port'],
    ['origins: [https://a/b]', /^1:11 origins\[0\]: expected an origin/],
    ['trustedProxies: [nowhere]', /^1:18 trustedProxies\[0\]: expected an IP address or a block/],
    ['secret: ""', '1:9 secret: expected a secret that is not empty'],
    ['secret:', '1:8 secret: expected a string, found nothing'],
    ['listen: localhost', /^1:9 listen: expected HOST:PORT/],
    ['servers: []', '1:10 servers: expected a map, found a list'],
    ['servers: { "a b": { command: x } }', /^1:12 servers\.a b: a server is named with letters/],
    ['servers: { _a: { command: x } }', /^1:12 servers\._a: a server is named with letters/],
    ['servers: { a: }', '1:15 servers.a: expected a map, found nothing'],
    ['servers: { a: {} }', '1:12 servers.a: needs a `command` or a `url`'],
    [
      'servers: { a: { command: x, url: http://x } }',
      /^1:29 servers\.a\.url: a server has a `command` or a `url`/,
    ],
    ['servers: { a: { command: x, headers: {} } }', '1:29 servers.a.headers: belongs to a server with `url`'],
    [
      'servers: { a: { url: http://x, args: [] } }',
      '1:32 servers.a.args: belongs to a server with `command`',
    ],
    [
      'servers: { a: { command: [x], args: [y] } }',
      /^1:31 servers\.a\.args: belongs to a `command` that is one string/,
    ],
    ['servers: { a: { command: [] } }', '1:26 servers.a.command: names no program'],
    ['servers: { a: { command: ["", x] } }', '1:26 servers.a.command: names no program'],
    ['servers: { a: { command: " " } }', '1:26 servers.a.command: names no program'],
    ['servers: { a: { command: "", args: [] } }', '1:26 servers.a.command: names no program'],
    ['servers: { a: { command: "a \'b" } }', "1:26 servers.a.command: a quote (') is not closed"],
    ['servers: { a: { command: 5 } }', '1:26 servers.a.command: expected a string or a list, found a number'],
    ['servers: { a: { command: "a\\0b", args: [] } }', /^1:26 servers\.a\.command: holds a NUL/],
    ['servers: { a: { command: ["a\\0b"] } }', /^1:27 servers\.a\.command\[0\]: holds a NUL/],
    [
      'servers: { a: { command: x, env: { N: 1 } } }',
      /^1:39 servers\.a\.env\.N: expected a string, found a number/,
    ],
    [
      'servers: { a: { command: x, env: { "A=B": x } } }',
      /^1:36 servers\.a\.env\.A=B: is no name for an env/,
    ],
    [
      'servers: { a: { url: "http://x", headers: { "a b": x } } }',
      /^1:45 servers\.a\.headers\.a b: is no name/,
    ],
    [
      'servers: { a: { url: "http://x", headers: { a: "b\\nc" } } }',
      /^1:48 servers\.a\.headers\.a: holds a character/,
    ],
    [
      'servers: { a: { url: "http://x", headers: { Host: a, host: b } } }',
      /^1:54 servers\.a\.headers\.host: is there twice/,
    ],
    [
      'servers: { a: { url: "http://x", headers: { Mcp-Name: a } } }',
      /^1:45 servers\.a\.headers\.Mcp-Name: this header is set by/,
    ],
    [
      'servers: { a: { url: "http://me:pw@x" } }',
      /^1:22 servers\.a\.url: a user name or password does not belong/,
    ],
    ['servers: { a: { url: /mcp } }', '1:22 servers.a.url: expected an http:// or https:// URL'],
    [
      'servers: { a: { url: "http://x", transport: http } }',
      /^1:45 servers\.a\.transport: expected one of auto, streamable-http, sse/,
    ],
    [
      'servers: { a: { command: x, disabled: true } }',
      '1:29 servers.a.disabled: unknown key; did you mean `enabled`?',
    ],
    [
      'servers: { a: { command: x, enabled: "yes" } }',
      '1:38 servers.a.enabled: expected true or false, found a string',
    ],
    [
      'servers: { a: { command: x, timeout: 2m, maxTimeout: 1m } }',
      '1:38 servers.a.timeout: is longer than `maxTimeout`',
    ],
    [
      'servers: { a: { command: x, tools: { deny: x } } }',
      '1:44 servers.a.tools.deny: expected a list, found a string',
    ],
    [
      'servers: { a: { command: x, tools: { alow: [] } } }',
      '1:38 servers.a.tools.alow: unknown key; did you mean `allow`?',
    ],
    [
      'servers: { a: { command: x, tools: { rename: { b: "c d" } } } }',
      /^1:51 servers\.a\.tools\.rename\.b: expected 1 to 128/,
    ],
    [
      'servers: { a: { command: x, tools: { rename: { b: d, c: d } } } }',
      /^1:57 servers\.a\.tools\.rename\.c: is renamed to the same name as `b`/,
    ],
    [
      'servers: { a: { url: "http://x", passthrough: [files] } }',
      /^1:48 servers\.a\.passthrough\[0\]: expected a path/,
    ],
  ])('%s', (text, message) => {
    const complaints = complaintsIn(text);
    expect(complaints).toHaveLength(1);
    const [complaint = ''] = complaints;
    expect(complaint.replace(/^config\.yaml:/, '')).toEqual(
      typeof message === 'string' ? message : expect.stringMatching(message),
    );
  });
});

describe('what is no usable YAML', () => {
  test.each([
    ['a: "x\nb: c\n', /^config\.yaml:\d+:\d+ Missing closing "quote/],
    ['\tlisten: x', /^config\.yaml:1:1 Tabs are not allowed/],
    ['log: { level: info', /^config\.yaml:1:19 /],
    ['log: *none', /^config\.yaml:1:1 Unresolved alias/],
    ['log: !!js x', /^config\.yaml:1:6 Unresolved tag/],
    ['log: {}\n---\nlog: {}', 'config.yaml:2:1 a config is one YAML document; here a second one starts'],
    ['log: &a [*a]', 'config.yaml:1:1 is nested more than 32 levels deep'],
  ])('%j is refused with the place', (text, message) => {
    expect(complaintsIn(text)).toContainEqual(
      typeof message === 'string' ? message : expect.stringMatching(message),
    );
  });

  test('a text with a mistake of syntax is not checked further, since what it means is a guess', () => {
    expect(complaintsIn('bogus: 1\nlog: { level: loud')).toHaveLength(1);
  });

  test('a bomb of aliases is refused quickly', () => {
    const rows = Array.from({ length: 9 }, (_, at) => `x${at + 1}: &x${at + 1} [${`*x${at},`.repeat(9)}]`);
    expect(complaintsIn(['x0: &x0 [a]', ...rows].join('\n'))).toEqual([
      expect.stringContaining('Excessive alias count'),
    ]);
  });
});

describe('a duplicate key', () => {
  test('is refused at the second one, and names the first', () => {
    expect(complaintsIn('log:\n  level: info\n  level: warn\nservers: {}\nlog: {}')).toEqual([
      'config.yaml:3:3 log.level: is there twice; the first is at line 2',
      'config.yaml:5:1 log: is there twice; the first is at line 1',
    ]);
  });

  test('hides no other mistake', () => {
    expect(complaintsIn('bogus: 1\nlog: {}\nlog: { level: loud }')).toEqual([
      expect.stringContaining('1:1 bogus'),
      expect.stringContaining('3:1 log: is there twice'),
      expect.stringContaining('3:15 log.level'),
    ]);
  });
});

test('a mistake in what an alias stands for is told where it is written', () => {
  const text = 'servers:\n  a: &a\n    command: x\n    timeout: soon\n  b: *a\n';
  expect(complaintsIn(text)).toEqual([
    expect.stringMatching(/^config\.yaml:4:14 servers\.a\.timeout/),
    expect.stringMatching(/^config\.yaml:4:14 servers\.b\.timeout/),
  ]);
});

test('no message holds a value that was filled in', () => {
  const keys = ['listen', 'admin', 'publicUrl', 'drainTimeout'];
  const text = `${keys.map((key) => `${key}: \${V}`).join('\n')}
hosts: ["\${V}"]
origins: ["\${V}"]
trustedProxies: ["\${V}"]
log: { level: "\${V}" }
limits: { body: "\${V}", pages: "\${V}" }
servers:
  a: { url: "\${V}", headers: { A: "\${V}" }, transport: "\${V}", tools: { rename: { a: "\${V}", b: "\${V}" } } }
  b: { command: "'\${V}", timeout: "\${V}", cwd: "\${V}", enabled: "\${V}" }
  c: "\${V}"
`;
  const complaints = complaintsIn(text, { env: { V: 'hunter2 "\n é€' } });
  expect(complaints.length).toBeGreaterThan(15);
  expect(complaints.join('\n')).not.toContain('hunter2');
});
