import { describe, expect, test } from 'vitest';
import { createKey, hashOfKey } from '../../src/config/key-hash.ts';
import { complaintsIn, parse } from './parse-fixture.ts';

const hash = hashOfKey('mcy_a');
const other = hashOfKey('mcy_b');
const key = `keys: { ann: "${hash}" }`;

/** The same host with another port. */
const atPort = (port: number, address: string): string => address.replace(/\d+$/, String(port));

const beyond = ['0.0.0.0:8808', ':8808', '*:8808', '[::]:8808', '192.168.1.5:80', 'example.com:80'];

describe('an address beyond loopback', () => {
  test.each(beyond)('%s is refused where nobody needs a key, and told what to write', (address) => {
    const complaints = complaintsIn(`listen: "${address}"\nadmin: "${atPort(9, address)}"`);
    expect(complaints.map((line) => line.replace(/: beyond loopback.*/, ''))).toEqual([
      'config.yaml:1:9 listen',
      'config.yaml:2:8 admin',
    ]);
    for (const complaint of complaints) {
      expect(complaint).toContain('`mcpyard key new NAME`');
      expect(complaint).toContain('`auth: none`');
    }
    expect(complaints[1]).toContain('metrics: { token: … }');
  });

  test.each(beyond)('%s is allowed with a key', (address) => {
    const { auth, listen } = parse(`listen: "${address}"\nadmin: "${atPort(9, address)}"\n${key}`);
    expect(auth).toBe('keys');
    expect(listen.port).toBeGreaterThan(0);
  });

  test.each(beyond)('%s is allowed where `auth: none` is written', (address) => {
    expect(parse(`listen: "${address}"\nadmin: "${atPort(9, address)}"\nauth: none`).auth).toBe('none');
  });

  test('of the admin listener is allowed with a token, but that opens no other', () => {
    expect(parse('admin: :1\nmetrics: { token: 0123456789abcdef }').metrics.token).toBe('0123456789abcdef');
    expect(complaintsIn('listen: :1\nmetrics: { token: 0123456789abcdef }')).toHaveLength(1);
  });

  test('that comes from a variable is refused, too', () => {
    expect(complaintsIn(`listen: "\${WHERE}"`, { env: { WHERE: '0.0.0.0:1' } })).toHaveLength(1);
  });
});

test.each(['127.0.0.1:0', 'localhost:1', '[::1]:2', '127.9.9.9:3'])('%s needs no key', (address) => {
  const config = parse(`listen: "${address}"\nadmin: "${atPort(9, address)}"`);
  expect(config.listen.port).toBeLessThan(4);
  expect(config).toMatchObject({ auth: 'none', keys: {}, metrics: {} });
});

describe('listen and admin', () => {
  const places = (listen: string | undefined, admin: string | undefined): string =>
    [
      'auth: none',
      ...(listen === undefined ? [] : [`listen: "${listen}"`]),
      ...(admin === undefined ? [] : [`admin: "${admin}"`]),
    ].join('\n');

  test.each([
    ['127.0.0.1:1', '127.0.0.1:1', '3:8 admin: leaves no room for `listen`'],
    ['[::1]:1', '[::1]:1', '3:8 admin: leaves no room for `listen`'],
    ['Example.com:1', 'example.com:1', '3:8 admin: leaves no room for `listen`'],
    [':1', '127.0.0.1:1', '3:8 admin: leaves no room for `listen`'],
    ['127.0.0.1:1', '[::]:1', '3:8 admin: leaves no room for `listen`'],
    ['127.0.0.1:9808', undefined, '2:9 listen: leaves no room for `admin`'],
    [undefined, '127.0.0.1:8808', '2:8 admin: leaves no room for `listen`'],
  ])('%s and %s are one place, which is refused', (listen, admin, message) => {
    expect(complaintsIn(places(listen, admin))).toEqual([
      `config.yaml:${message}, which has the same address: give each a port of its own`,
    ]);
  });

  test.each([
    ['127.0.0.1:0', '127.0.0.1:0'],
    ['127.0.0.1:1', '127.0.0.1:2'],
    ['127.0.0.1:1', '127.0.0.2:1'],
    ['0.0.0.0:1', '[::1]:1'],
  ])('%s and %s are two', (listen, admin) => {
    expect(parse(places(listen, admin)).listen.port).toBeLessThan(2);
  });

  test('are one where keys are set, too, and where a variable says so', () => {
    const text = `${key}\nlisten: 127.0.0.1:1\nadmin: "\${WHERE}"`;
    expect(complaintsIn(text, { env: { WHERE: '127.0.0.1:1' } })).toEqual([
      expect.stringContaining('3:8 admin: leaves no room'),
    ]);
    expect(complaintsIn(text)).toEqual([expect.stringContaining('WHERE is not set')]);
  });
});

describe('keys', () => {
  test('are asked for where there are any, unless `auth` says otherwise', () => {
    expect(parse(key)).toMatchObject({ auth: 'keys', keys: { ann: hash } });
    expect(parse(`${key}\nauth: keys`).auth).toBe('keys');
    expect(parse(`${key}\nauth: none`).auth).toBe('none');
    expect(parse('keys: {}').auth).toBe('none');
  });

  test('have names of callers and hashes in either case', () => {
    const names = ['ann', 'A.b-c_d', 'ci@example.com', '0', 'x'.repeat(64)];
    const text = names.map(
      (name, at) => `  "${name}": ${hashOfKey(String(at)).toUpperCase().replace('SHA', 'sha')}`,
    );
    const { keys } = parse(`keys:\n${text.join('\n')}`);
    expect(Object.keys(keys).toSorted()).toEqual(names.toSorted());
    expect(Object.values(keys)).toContain(hashOfKey('0'));
  });

  test.each(['', '.a', '-a', 'a b', 'a/b', 'é', 'anonymous', 'x'.repeat(65), '__proto__'])(
    'have no name like %j',
    (name) => {
      expect(complaintsIn(`keys: { ${JSON.stringify(name)}: "${hash}" }`)).toHaveLength(1);
    },
  );

  test.each(['mcy_qwertz', 'sha256:abc', `sha512:${'0'.repeat(64)}`, `${hash}0`, ''])(
    'have no hash like %j, and what is wrong is not shown, since it may be the key',
    (wrong) => {
      const [complaint = '', ...others] = complaintsIn(`keys: { ann: "${wrong}" }`);
      expect(others).toEqual([]);
      expect(complaint).toContain('keys.ann: expected a hash');
      expect(complaint).not.toContain('qwertz');
    },
  );

  test('are one each: two names for one key would leave open who called', () => {
    expect(
      complaintsIn(
        `keys:\n  ann: ${hash}\n  bob: ${other}\n  eve: ${hash.toUpperCase().replace('SHA', 'sha')}`,
      ),
    ).toEqual(['config.yaml:4:8 keys.eve: is the key of `ann` too']);
  });

  test('have to be there where `auth: keys` is written', () => {
    expect(complaintsIn('auth: keys')).toEqual([
      'config.yaml:1:7 auth: there is no key yet: `mcpyard key new NAME` makes one',
    ]);
  });

  test('may be filled in; one that can not be stops the start', () => {
    expect(parse(`keys: { ann: "\${HASH}" }`, { env: { HASH: hash } }).keys).toEqual({ ann: hash });
    expect(complaintsIn(`listen: ":1"\nkeys: { ann: "\${HASH}" }`)).toEqual([
      expect.stringContaining('2:14 keys.ann: the variable HASH is not set'),
    ]);
  });

  test('are made of 32 random bytes', () => {
    const made = createKey((bytes) => Buffer.alloc(bytes, 0xff));
    expect(made).toBe(`mcy_${'_'.repeat(42)}8`);
    // As `printf mcy_a | sha256sum` says.
    expect(hash).toBe('sha256:b7bc125711f86457fbfadaf30e90cc47581faa94509f44820e3ece1100187440');
  });
});

describe('tls', () => {
  test('has two paths, from the folder of the config on', () => {
    expect(parse('tls: { cert: tls/cert.pem, key: /run/key.pem }').tls).toEqual({
      cert: '/etc/mcpyard/tls/cert.pem',
      key: '/run/key.pem',
    });
    expect(parse('tls:').tls).toBeUndefined();
  });

  test.each([
    ['tls: { cert: a }', 'tls.key: is missing'],
    ['tls: { key: a, cert: "" }', 'tls.cert: expected a path that is not empty'],
    ['tls: { key: a, cert: b, ca: c }', 'tls.ca: unknown key; known here: cert, key'],
  ])('%s is refused', (text, message) => {
    expect(complaintsIn(text)).toEqual([expect.stringContaining(message)]);
  });
});

describe('metrics.token', () => {
  test('is a secret', () => {
    expect(parse('metrics: { token: 0123456789abcdef }').secrets).toEqual(['0123456789abcdef']);
  });

  test.each(['""', '"a b"', '"é0123456789abcdef"', '1234'])('can not be %s', (token) => {
    expect(complaintsIn(`metrics: { token: ${token} }`)).toHaveLength(1);
  });
});

describe('passthrough', () => {
  const server = (rest: string) => `servers: { web: { url: "http://a/mcp", ${rest} } }`;

  test('is a list of plain paths, without the headers unless that is written', () => {
    expect(parse(server('passthrough: [/files, /icons/]')).servers[0]).toMatchObject({
      passthrough: ['/files', '/icons/'],
      passthroughHeaders: false,
    });
    expect(parse(server('passthrough: [/], passthroughHeaders: true')).servers[0]?.passthroughHeaders).toBe(
      true,
    );
  });

  test.each([
    'files',
    '/a//b',
    '/../a',
    '/a/..',
    '/a/./b',
    '/%2e',
    '/a?b',
    '/a#b',
    '/a\\\\b',
    '/a b',
    '/é',
    '',
  ])('has no path like %j', (path) => {
    expect(complaintsIn(server(`passthrough: ["${path}"]`))).toEqual([
      expect.stringContaining('servers.web.passthrough[0]: expected a path'),
    ]);
  });

  test('belongs to a server with a URL', () => {
    expect(complaintsIn('servers: { a: { command: x, passthroughHeaders: true } }')).toEqual([
      expect.stringContaining('servers.a.passthroughHeaders: belongs to a server with `url`'),
    ]);
  });
});

describe('isolation: caller', () => {
  const isolated = 'servers: { a: { command: x, isolation: caller } }';
  const warned = [expect.stringMatching(/^servers\.a\.isolation: .* 2026-07-28 .* share one process/)];

  test('is warned of where nobody has a key, by which alone all callers are told apart', () => {
    expect(parse(isolated).warnings).toEqual(warned);
    expect(parse(`${key}\nauth: none\n${isolated}`).warnings).toContainEqual(warned[0]);
    expect(parse(`${key}\n${isolated}`).warnings).toEqual([]);
  });
});

describe('what is worth a second look', () => {
  const servers = 'servers: { a: { command: x } }';

  test.each([
    [`listen: ":1"\nauth: none\nhosts: [a]`, ['auth: is `none`, so everybody']],
    [`listen: ":1"\n${key}\nhosts: [a]`, ['listen: keys reach this address unencrypted']],
    [`listen: ":1"\n${key}\ntls: { cert: c, key: k }`, ['hosts: only loopback names are allowed']],
    [`listen: ":1"\n${key}\ntls: { cert: c, key: k }\npublicUrl: https://a`, []],
    [`listen: ":1"\n${key}\ntrustedProxies: [10.0.0.1]\nhosts: [a, localhost]`, []],
    [`admin: ":1"\n${key}`, ['admin: everybody who reaches this address may read']],
    [`${key}\nauth: none`, ['keys: nobody is asked for one']],
    ['metrics: { token: short }', ['metrics.token: has fewer than 16 characters']],
    [key, []],
    ['publicUrl: https://a\ntrustedProxies: [::1]', []],
  ])('%j', (text, warnings) => {
    expect(parse(`${text}\n${servers}`).warnings).toEqual(
      warnings.map((warning) => expect.stringContaining(warning)),
    );
  });
});
