import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { aliasOf, openAlias } from '../../src/catalog/uri-alias.ts';

describe('the alias of a URI', () => {
  test.each([
    ['ui://widget/page.html', 'ui://l2+widget/page.html'],
    ['file:///home/a', 'file://l2+/home/a'],
    ['db://user@host:5432/x?y#z', 'db://l2+user@host:5432/x?y#z'],
    ['x://[::1]:80/a', 'x://l2+%5B%3A%3A1%5D%3A80/a'],
    ['x://a%20b/c%20d', 'x://l2+a%2520b/c%20d'],
    ['x://', 'x://l2+'],
    ['urn:isbn:1', 'urn:l2+isbn:1'],
    ['memo:', 'memo:l2+'],
    ['git+ssh://host/path', 'git+ssh://l2+host/path'],
    ['X-Y.Z://A', 'X-Y.Z://l2+A'],
    ['ui://l1+widget/a', 'ui://l2+l1+widget/a'],
    ['raw://{host}/item{/path}{?q}', 'raw://l2+{host}/item{/path}{?q}'],
    ['raw://host{/path}', 'raw://l2+host{/path}'],
  ])('of %s is %s, and it comes back', (uri, alias) => {
    expect(aliasOf({ upstream: 'l2', uri })).toBe(alias);
    expect(openAlias(alias)).toEqual({ upstream: 'l2', uri });
  });

  test.each([
    ['raw://l2+a%20b/item', 'raw://a%20b/item'],
    ['raw://l2+a%2Fb%3A8/item', 'raw://a%2Fb%3A8/item'],
    ['raw://l2+caf%C3%A9/item', 'raw://caf%C3%A9/item'],
    ['raw://l2+50%25/item', 'raw://50%25/item'],
  ])(
    'of a template with a value filled in, %s, keeps the value as the client has encoded it',
    (alias, uri) => {
      expect(openAlias(alias)).toEqual({ upstream: 'l2', uri });
    },
  );

  test.each([
    'http://a/b',
    'https://a/b',
    'HTTPS://a',
    '/path',
    'nothing',
    '',
    '://x',
    'x://[{host}]/a',
    'x://a b/c',
  ])('does not exist of %s', (uri) => {
    expect(aliasOf({ upstream: 'l2', uri })).toBeUndefined();
  });

  test.each([
    'ui://widget/page.html',
    'http://l2+a/b',
    'https://l2+a',
    'urn:isbn:1',
    'x://+a',
    'x://_+a',
    'x://l2+%zz/',
    'plain',
  ])('is not %s', (uri) => {
    expect(openAlias(uri)).toBeUndefined();
  });

  test('comes back whatever the URI is', () => {
    const part = fc.stringMatching(/^[ -~]{0,20}$/);
    fc.assert(
      fc.property(fc.constantFrom('x://', 'x:', 'file:///'), part, (start, rest) => {
        const uri = start + rest;
        const alias = aliasOf({ upstream: 'l2', uri });
        if (alias !== undefined) expect(openAlias(alias)).toEqual({ upstream: 'l2', uri });
      }),
    );
  });
});
