import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { editServer, writtenServers } from '../../src/config/edit.ts';

const server = { command: ['npx', '-y', 'a b', `\${KEY}`], env: { TOKEN: `Bearer \${T}`, YES: 'yes' } };

const lines = (...texts: readonly string[]): string => `${texts.join('\n')}\n`;

const written = (indent = '  ', step = '  '): readonly string[] => [
  `${indent}new:`,
  `${indent}${step}command: [npx, -y, a b, "\${KEY}"]`,
  `${indent}${step}env:`,
  `${indent}${step}${step}TOKEN: Bearer \${T}`,
  `${indent}${step}${step}YES: yes`,
];

describe('a server that is added', () => {
  test.each([
    ['an empty file', '', lines('servers:', ...written())],
    ['a file of comments', '# mine\n', lines('# mine', '', 'servers:', ...written())],
    [
      'a file without servers and without a last line end',
      'listen: "127.0.0.1:1"',
      lines('listen: "127.0.0.1:1"', '', 'servers:', ...written()),
    ],
    [
      'a section whose servers are all comments',
      'servers:\n  # a:\n  #   url: http://x\nlog: {}\n',
      lines('servers:', ...written(), '  # a:', '  #   url: http://x', 'log: {}'),
    ],
    ['an empty section', 'servers: {}\nlog: {}\n', lines('servers:', ...written(), 'log: {}')],
    [
      'the last server, before the comments after it',
      'servers:\n  a: {url: "http://x"}   # own\n\n  # later\nlog:   {level: info}\n',
      lines(
        'servers:',
        '  a: {url: "http://x"}   # own',
        ...written(),
        '',
        '  # later',
        'log:   {level: info}',
      ),
    ],
    [
      'servers with empty lines between them',
      'servers:\n  a:\n    url: http://x\n\n  b:\n    url: http://y',
      lines('servers:', '  a:', '    url: http://x', '', '  b:', '    url: http://y', '', ...written()),
    ],
    [
      'servers that are indented by four',
      'servers:\n    a:\n        url: http://x\n',
      lines('servers:', '    a:', '        url: http://x', ...written('    ', '    ')),
    ],
    [
      'a text in several lines',
      'servers:\n  a:\n    command: |\n      x\n      y\n\n# end\n',
      lines('servers:', '  a:', '    command: |', '      x', '      y', ...written(), '', '# end'),
    ],
  ])('goes behind %s, which stays as it is', (_, before, after) => {
    expect(editServer(before, 'new', server)).toBe(after);
  });

  test('is written with the line ends of the file', () => {
    const before = 'servers:\r\n  a:\r\n    url: http://x\r\n';
    expect(editServer(before, 'new', server)).toBe(`${before}${written().join('\r\n')}\r\n`);
  });

  test('is put between braces where the file has those, with the comments kept', () => {
    const after = editServer('servers: {a: {url: "http://x"}} # all\n', 'new', { url: 'http://y' });
    expect(after).toBe('servers: {a: {url: "http://x"}, new: {url: http://y}} # all\n');
  });

  test('leaves JSON JSON, with its indentation', () => {
    const before = JSON.stringify({ servers: { a: { url: 'http://x' } } }, null, 4);
    const after = editServer(before, 'new', server);
    expect(JSON.parse(after)).toEqual({ servers: { a: { url: 'http://x' }, new: server } });
    expect(after).toContain('\n    "servers"');
  });

  test('may have any name and any texts', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,8}$/),
        fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 3 }),
        fc.dictionary(fc.stringMatching(/^[A-Z_]{1,5}$/), fc.string({ unit: 'binary' }), {
          maxKeys: 3,
          noNullPrototype: true,
        }),
        (name, command, env) => {
          const before = '# top\nservers:\n  keep: {url: "http://x"}  # own\n\n# end\n';
          fc.pre(name !== 'keep');
          const after = editServer(before, name, { command, env });
          expect(writtenServers(after)).toEqual({ keep: { url: 'http://x' }, [name]: { command, env } });
          for (const line of ['# top', '  keep: {url: "http://x"}  # own', '# end'])
            expect(after.split('\n')).toContain(line);
          expect(editServer(after, name, undefined)).toBe(before);
        },
      ),
    );
  });
});

describe('a server that is replaced', () => {
  test('keeps its place and the comments above it', () => {
    const before = lines(
      'servers:',
      '  # the first',
      '  new: {url: "http://x"}',
      '',
      '  # another',
      '  b: {url: "http://y"}',
    );
    expect(editServer(before, 'new', server)).toBe(
      lines('servers:', '  # the first', ...written(), '', '  # another', '  b: {url: "http://y"}'),
    );
  });
});

describe('a server that is removed', () => {
  test('takes the comments above and inside it along, and no others', () => {
    const before = lines(
      '# the config',
      'servers:',
      '  a: {url: "http://x"}',
      '',
      '  # about b',
      '  # in two lines',
      '  b:',
      '    url: http://y',
      '    # headers: {}',
      '',
      '  # about c',
      '  c: {url: "http://z"}',
    );
    expect(editServer(before, 'b', undefined)).toBe(
      lines(
        '# the config',
        'servers:',
        '  a: {url: "http://x"}',
        '',
        '  # about c',
        '  c: {url: "http://z"}',
      ),
    );
  });

  test('may be the only one', () => {
    expect(editServer('servers:\n  a: {url: "http://x"}\n', 'a', undefined)).toBe('servers:\n');
  });

  test('may be each of the config of this repository, and the rest stays', () => {
    const text = readFileSync('config.yaml', 'utf8');
    const servers = Object.keys(writtenServers(text));
    expect(servers).toEqual(['everything', 'memory']);
    for (const name of servers) {
      const after = editServer(text, name, undefined);
      expect(Object.keys(writtenServers(after))).toEqual(servers.filter((other) => other !== name));
      const kept = new Set(text.split('\n'));
      expect(after.split('\n').filter((line) => !kept.has(line))).toEqual([]);
      expect(after).toContain('# A server over HTTP.');
    }
  });

  test('is refused where another value refers to it', () => {
    const text = 'servers:\n  a: &a {url: "http://x"}\n  b: *a\n';
    expect(() => editServer(text, 'a', undefined)).toThrow(/servers\.a .*by hand/);
    expect(parseYaml(editServer(text, 'b', undefined))).toEqual({ servers: { a: { url: 'http://x' } } });
  });
});
