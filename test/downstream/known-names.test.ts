import { type IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { headersOf, KnownNames } from '../../src/downstream/known-names.ts';

/** As Node.js reads them. */
function plain(rawHeaders: string[]): object {
  const message = new IncomingMessage(new Socket()) as IncomingMessage & {
    _addHeaderLines(lines: string[], count: number): void;
  };
  message._addHeaderLines(rawHeaders, rawHeaders.length);
  return message.headers;
}

function read(known: KnownNames, rawHeaders: readonly string[]): IncomingHttpHeaders | undefined {
  const kind = known.kindOf(rawHeaders);
  return kind === undefined ? undefined : headersOf(kind, rawHeaders);
}

const usual = ['Host', 'a:1', 'Content-Type', 'application/json', 'mcp-name', 'x', 'content-length', '7'];

const readable: readonly (readonly [string, string[]])[] = [
  ['usual ones', usual],
  ['no headers', []],
  ['empty values', ['Host', '', 'X-A', '']],
  ['names in any case', ['HOST', 'a', 'CoNtEnT-tYpE', 'text/html', 'aUTHORIZATION', 'Bearer x']],
  ['names of members of objects', ['constructor', 'a', 'toString', 'c', 'Host', 'd']],
  ['names that are numbers', ['2', 'b', '1', 'a', 'Host', 'c']],
  ['cookies', ['Cookie', 'a=1; b=2', 'Host', 'x']],
];

describe('headers', () => {
  test.each(readable)('are read as Node.js does: %s', (_, rawHeaders) => {
    const known = new KnownNames();
    const other = rawHeaders.map((text, at) => (at % 2 === 0 ? text : `${text}!`));
    for (const headers of [rawHeaders, other, usual, rawHeaders, other]) {
      const headersRead = read(known, headers);
      expect(headersRead).toEqual(plain(headers));
      expect(Object.entries(headersRead ?? {})).toEqual(Object.entries(plain(headers)));
    }
  });

  test.each([
    ['a name stands twice', ['Host', 'a', 'host', 'b']],
    ['a name stands twice after it had stood once', ['Host', 'a', 'X-A', 'b', 'x-a', 'c']],
    ['Node.js makes a list', ['Set-Cookie', 'a=1', 'Host', 'b']],
    ['Node.js makes nothing of one', ['__Proto__', 'a=1', 'Host', 'b']],
    ['there are many', Array.from({ length: 66 }, (_, at) => `x-${at}`)],
  ])('are left to Node.js where %s', (_, rawHeaders) => {
    const known = new KnownNames();
    read(known, usual);
    expect(read(known, rawHeaders)).toBeUndefined();
    expect(read(known, rawHeaders)).toBeUndefined();
    expect(read(known, usual)).toEqual(plain(usual));
  });

  test('of many kinds of clients are no mixture', () => {
    const known = new KnownNames();
    const kinds = Array.from({ length: 9 }, (_, kind) => [
      'Host',
      `h${kind}`,
      `X-${kind}`,
      'own',
      'Accept',
      '*',
    ]);
    for (let round = 0; round < 3; round++)
      for (const headers of [...kinds, ...kinds.toReversed()])
        expect(read(known, headers)).toEqual(plain(headers));
  });

  test('of one request are its own to change', () => {
    const known = new KnownNames();
    const first = read(known, usual);
    if (first !== undefined) first.host = 'other';
    expect(read(known, usual)?.host).toBe('a:1');
  });
});

test.each([
  ['none', usual, false],
  ['one', [...usual, 'Mcp-Param-Region', 'eu'], true],
  ['one that only begins so', [...usual, 'Mcp-Parameter', 'eu'], false],
])('headers that mirror arguments are told: %s', (_, rawHeaders, hasParams) => {
  expect(new KnownNames().kindOf(rawHeaders)?.hasParams).toBe(hasParams);
});
