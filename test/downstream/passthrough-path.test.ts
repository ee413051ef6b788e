import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isInside, locationFor, type Place, targetOf } from '../../src/downstream/passthrough-path.ts';

const place: Place = {
  name: 'web',
  url: new URL('http://up:8080/files/mcp'),
  prefixes: ['/files', '/icons/'],
};

describe('a target', () => {
  test.each([
    ['/servers/web/files/a', { name: 'web', path: '/files/a', query: '' }],
    ['/servers/web/', { name: 'web', path: '/', query: '' }],
    ['/servers/web/a?b=/../c?d', { name: 'web', path: '/a', query: '?b=/../c?d' }],
    ['/servers/w%65b/a', { name: 'w%65b', path: '/a', query: '' }],
  ])('%s is taken apart', (url, target) => {
    expect(targetOf(url)).toEqual(target);
  });

  test.each([
    '/servers',
    '/servers/',
    '/servers/web',
    '/servers/web?/a',
    '/Servers/web/a',
    '/servers/web/a#b',
    '/servers/web/a b',
    '/servers/web/é',
    'http://x/servers/web/a',
    `/servers/web/${'a'.repeat(8_192)}`,
    '',
  ])('%j is none', (url) => {
    expect(targetOf(url)).toBeUndefined();
  });
});

describe('a path is passed through', () => {
  test.each([
    '/files',
    '/files/',
    '/files/a',
    '/files/a/b.tar.gz',
    '/files/a%20b%25.txt',
    '/files/100%25',
    '/files/%E2%82%AC',
    '/files/.hidden',
    '/files/a..b',
    '/files/a;v=1',
    '/files/mcp2',
    '/icons/x.png',
  ])('%s', (path) => {
    expect(isInside(place, path)).toBe(true);
  });
});

describe('a path is not passed through', () => {
  test.each([
    '/',
    '/file',
    '/filesystem',
    '/FILES/a',
    '/icons',
    '/other/files/a',
    '/f%69les/a',
    '/files/../etc',
    '/files/..',
    '/files/.',
    '/files/./a',
    '/files//a',
    '//files/a',
    '/files/a//',
    '/files/%2e%2e/etc',
    '/files/%2E./etc',
    '/files/.%2e/etc',
    '/files/%252e%252e/etc',
    '/files/%25252e%25252e/etc',
    '/files/..%2fetc',
    '/files%2f..%2fetc',
    '/files/a%2fb',
    '/files/a%252fb',
    '/files/..%5cetc',
    '/files/..\\etc',
    '/files/a%255cb',
    '/files/..;/etc',
    '/files/..;a=b/etc',
    '/files/%2e%2e;/etc',
    '/files/.. /etc',
    '/files/..%20/etc',
    '/files/.../etc',
    '/files/%c0%ae%c0%ae/etc',
    '/files/%25c0%25ae/etc',
    '/files/%u002e%u002e/etc',
    '/files/%00',
    '/files/a%0d%0ab',
    '/files/%7f',
    '/files/%',
    '/files/%zz',
    '/files/%ff',
    '/files/%2525252525252e',
    '/files/mcp',
    '/files/mcp/',
    '/files/MCP',
    '/files/%6dcp',
    '/files/mcp;a',
    '/files/mcp%20',
    '/files/mcp.',
    '/files/%256dcp',
    '/files/;/mcp',
    '/files/%20/mcp',
  ])('%s', (path) => {
    expect(isInside(place, path)).toBe(false);
  });

  test('where nothing is', () => {
    expect(isInside({ ...place, prefixes: [] }, '/files/a')).toBe(false);
  });

  test('that is MCP’s own, even where all is passed through', () => {
    const all = { ...place, prefixes: ['/'] };
    expect(isInside(all, '/anything')).toBe(true);
    expect(isInside(all, '/files/mcp')).toBe(false);
    expect(isInside({ ...all, url: new URL('http://up') }, '/')).toBe(false);
  });
});

/** What a server may make of a path: decodes, takes backslashes for slashes, resolves dots, merges slashes, drops parameters. */
function lenient(path: string, rounds: number): string {
  let text = path;
  for (let round = 0; round < rounds; round++)
    text = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  const out: string[] = [];
  for (const raw of text.replaceAll('\\', '/').split('/')) {
    const segment = (raw.split(';', 1)[0] ?? '').trimEnd();
    if (segment === '' || segment === '.') continue;
    if (segment === '..') out.pop();
    else out.push(segment);
  }
  return `/${out.join('/')}`;
}

test('no path that is passed through is read as one outside, however a server reads it', () => {
  const piece = fc.constantFrom(
    '/',
    '/files',
    'files',
    '..',
    '.',
    '%2e',
    '%2f',
    '%5c',
    '\\',
    '%25',
    '2e',
    '2f',
    ';',
    '%20',
    ' ',
    'a',
    '%c0%ae',
    '%',
    'mcp',
    'icons',
  );
  const paths = fc.array(piece, { minLength: 1, maxLength: 12 }).map((pieces) => `/files/${pieces.join('')}`);
  let inside = 0;
  fc.assert(
    fc.property(paths, fc.integer({ min: 0, max: 4 }), (path, rounds) => {
      if (!isInside(place, path)) return;
      inside += 1;
      const read = lenient(path, rounds);
      expect(read.startsWith('/files') || read.startsWith('/icons')).toBe(true);
      expect(read).not.toBe('/files/mcp');
    }),
    { numRuns: 20_000, seed: 1 },
  );
  expect(inside).toBeGreaterThan(500);
});

describe('a Location', () => {
  test.each([
    ['/files/b', '../files/b'],
    ['b', '../files/b'],
    ['http://up:8080/files/b?c#d', '../files/b?c#d'],
    ['//up:8080/icons/b', '../icons/b'],
    ['/files/x/../b', '../files/b'],
    ['https://cdn.example.com/x?sig=1', 'https://cdn.example.com/x?sig=1'],
    ['http://up/files/b', 'http://up/files/b'],
  ])('%s is %s to the client', (location, told) => {
    expect(locationFor(place, '/files/a', location)).toBe(told);
  });

  test.each([
    '/mcp',
    '/files/mcp',
    '/files/../etc',
    '/files/%2e%2e%2fetc',
    'http://up:8080/etc',
    'javascript:alert(1)',
    'data:text/html,x',
    'http://[',
  ])('%s is kept back', (location) => {
    expect(locationFor(place, '/files/a', location)).toBeUndefined();
  });

  test('is relative to the path that was asked for', () => {
    const from = (path: string) => {
      const told = locationFor({ ...place, prefixes: ['/'] }, path, '/x:y/z') ?? '';
      return new URL(told, `http://gate/below/servers/web${path}`).pathname;
    };
    for (const path of ['/a', '/a/b', '/a/', '/a/b/c/d']) expect(from(path)).toBe('/below/servers/web/x:y/z');
  });
});
