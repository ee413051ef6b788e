import { describe, expect, test } from 'vitest';
import { type Shelf, sameShelf, shelfOf } from '../../src/catalog/shelf.ts';
import type { ListKind } from '../../src/protocol/methods.ts';

interface Over {
  readonly kind?: ListKind;
  readonly prefix?: string;
  readonly tools?: object;
  readonly era?: 'modern' | 'legacy';
  readonly transport?: 'stdio' | 'streamable-http';
  readonly cut?: string;
}

function shelf(items: readonly string[], over: Over = {}): Shelf {
  const {
    kind = 'tools',
    prefix = 'up__',
    tools = {},
    era = 'modern',
    transport = 'streamable-http',
    cut,
  } = over;
  return shelfOf(
    kind,
    {
      items: items.map((item) => Buffer.from(item)),
      ttlMs: undefined,
      scope: undefined,
      cut,
      limit: undefined,
    },
    {
      server: { name: 'up', prefix, tools: { deny: [], rename: {}, ...tools } },
      nameLengthMax: 50,
      era,
      transport,
      scan: { strict: true, depthMax: 16 },
    },
    { untilMs: 1, scope: 'public' },
  );
}

const bytes = (one: Shelf): string[] => one.entries.map((entry) => entry.bytes.toString());
const names = (one: Shelf): string[] => one.entries.map(({ publicKey }) => publicKey);
const left = (one: Shelf): (readonly [string, string])[] =>
  one.leftOut.map(({ name, reason }) => [name, reason]);
const tool = (name: string, more = ''): string => `{"name":"${name}",${more}"inputSchema":{"type":"object"}}`;

describe('an item is handed out', () => {
  test('as it was written but for its name', () => {
    const item =
      '{ "title" : "\\u00e9" ,"name" : "re\\u0061d", "x":1.0,"inputSchema":{"type":"object","name":"read"} }';
    expect(bytes(shelf([item]))).toEqual([item.replace('"re\\u0061d"', '"up__read"')]);
  });

  test('as it was written where it has the name of its own', () => {
    expect(bytes(shelf([tool('read')], { prefix: '' }))).toEqual([tool('read')]);
  });

  test('with bytes of its own, so that a long page is not kept alive by one item', () => {
    const [entry] = shelf([tool('read')]).entries;
    expect(entry?.bytes.buffer.byteLength).toBe(entry?.bytes.length);
    expect(entry).toMatchObject({ upstream: 'up', localKey: 'read', publicKey: 'up__read' });
  });

  test.each([
    ['prompts', '{"name":"greet"}', '{"name":"up__greet"}'],
    ['resources', '{"uri":"raw://a","name":"greet"}', '{"uri":"raw://a","name":"greet"}'],
    ['templates', '{"uriTemplate":"raw://{a}","name":"greet"}', '{"uriTemplate":"raw://{a}","name":"greet"}'],
  ] as const)('of %s by its own key', (kind, item, expected) => {
    expect(bytes(shelf([item], { kind }))).toEqual([expected]);
  });

  test.each([
    [
      'first',
      '{"execution":{"taskSupport":"required"},"name":"a","inputSchema":{"type":"object"}}',
      '{"name":"up__a","inputSchema":{"type":"object"}}',
    ],
    [
      'in the middle',
      '{"name":"a" , "execution" : {} , "inputSchema":{"type":"object"}}',
      '{"name":"up__a" , "inputSchema":{"type":"object"}}',
    ],
    [
      'last',
      '{"name":"a","inputSchema":{"type":"object"}, "execution":{"a":[1,2]} }',
      '{"name":"up__a","inputSchema":{"type":"object"} }',
    ],
    [
      'after the name and last',
      '{"inputSchema":{"type":"object"},"name":"a","execution":{}}',
      '{"inputSchema":{"type":"object"},"name":"up__a"}',
    ],
  ])('without the tasks of a legacy revision, where they stand %s', (_, item, expected) => {
    expect(bytes(shelf([item], { era: 'legacy' }))).toEqual([expected]);
    expect(JSON.parse(bytes(shelf([item]))[0] ?? '')).toHaveProperty('execution');
  });
});

describe('tools are chosen and renamed by the own names of their server', () => {
  const all = ['read_file', 'read_dir', 'write_file', 'delete'].map((name) => tool(name));
  test.each([
    ['all without a choice', {}, ['up__read_file', 'up__read_dir', 'up__write_file', 'up__delete']],
    ['what is allowed', { allow: ['read_*'] }, ['up__read_file', 'up__read_dir']],
    ['none where none is allowed', { allow: [] }, []],
    ['all but what is denied', { deny: ['*_file', 'delete'] }, ['up__read_dir']],
    ['what is allowed and not denied', { allow: ['*_file'], deny: ['write_*'] }, ['up__read_file']],
    ['under new names', { allow: ['delete'], rename: { delete: 'remove' } }, ['up__remove']],
    ['by the old name where it has a new one', { allow: ['remove'], rename: { delete: 'remove' } }, []],
  ])('%s', (_, tools, expected) => {
    const made = shelf(all, { tools });
    expect(names(made)).toEqual(expected);
    expect(made.leftOut).toEqual([]);
  });

  test('but prompts and resources are not', () => {
    const tools = { allow: [], rename: { greet: 'hello' } };
    expect(names(shelf(['{"name":"greet"}'], { kind: 'prompts', tools }))).toEqual(['up__greet']);
  });

  test('a name that an object has by nature is no rename', () => {
    expect(names(shelf([tool('constructor'), tool('__proto__')]))).toEqual([
      'up__constructor',
      'up____proto__',
    ]);
  });
});

describe('what is malformed is left out alone, with the reason', () => {
  test.each([
    ['no object', '7', '?', 'no object'],
    ['a list', '[]', '?', 'no object'],
    ['no name', '{"inputSchema":{"type":"object"}}', '?', 'name is missing'],
    ['an empty name', tool(''), '', 'name is missing'],
    ['a name that is no string', '{"name":7,"inputSchema":{"type":"object"}}', '?', 'name is missing'],
    ['no inputSchema', '{"name":"a"}', 'a', 'inputSchema is missing'],
    ['an inputSchema that is no object', '{"name":"a","inputSchema":true}', 'a', 'inputSchema is missing'],
    ['an inputSchema without a type', '{"name":"a","inputSchema":{}}', 'a', 'not "object"'],
    ['an inputSchema of another type', '{"name":"a","inputSchema":{"type":"string"}}', 'a', 'not "object"'],
    ['its name twice', '{"name":"a","name":"b","inputSchema":{"type":"object"}}', '?', 'stands twice'],
    [
      'too deep a schema',
      `{"name":"a","inputSchema":{"type":"object","x":${'['.repeat(20)}${']'.repeat(20)}}}`,
      '?',
      'nested deeper',
    ],
  ])('a tool with %s', (_, item, name, reason) => {
    const made = shelf([tool('before'), item, tool('after')]);
    expect(names(made)).toEqual(['up__before', 'up__after']);
    expect(left(made)).toEqual([[name, expect.stringContaining(reason)]]);
  });

  test.each([
    ['resources', '{"name":"a"}', 'a', 'uri is missing'],
    ['templates', '{"name":"a","uri":"x"}', 'a', 'uriTemplate is missing'],
    ['prompts', '{}', '?', 'name is missing'],
  ] as const)('of %s too', (kind, item, name, reason) => {
    expect(left(shelf([item], { kind }))).toEqual([[name, expect.stringContaining(reason)]]);
  });

  test('a name that stands twice in a list counts once, the first', () => {
    const made = shelf([tool('a', '"x":1,'), tool('b'), tool('a', '"x":2,')]);
    expect(names(made)).toEqual(['up__a', 'up__b']);
    expect(bytes(made)[0]).toContain('"x":1');
    expect(left(made)).toEqual([['a', expect.stringContaining('twice')]]);
  });

  test('a list that a limit cut says so', () => {
    expect(left(shelf([], { cut: 'more than 5 pages' }))).toEqual([['…', 'more than 5 pages']]);
  });
});

describe('the mirrored headers of a tool', () => {
  const valid =
    '{"name":"a","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}';
  const invalid = valid.replace('"type":"string"', '"type":"number"');

  test('are read from its schema', () => {
    expect(shelf([valid]).entries[0]?.paramHeaders.map(({ header }) => header)).toEqual(['mcp-param-region']);
    expect(shelf([tool('a', '"description":"x-mcp-header",')]).entries[0]?.paramHeaders).toEqual([]);
  });

  test('that are invalid leave the tool out where it comes from a modern server over HTTP', () => {
    const made = shelf([invalid, tool('b')]);
    expect(names(made)).toEqual(['up__b']);
    expect(left(made)).toEqual([['a', expect.stringContaining('Region')]]);
  });

  test.each([
    { era: 'modern', transport: 'stdio' },
    { era: 'legacy', transport: 'streamable-http' },
    { era: 'legacy', transport: 'stdio' },
  ] as const)('that are invalid mean nothing from elsewhere: %j', (over) => {
    const made = shelf([invalid], over);
    expect(names(made)).toEqual(['up__a']);
    expect(made.entries[0]?.paramHeaders).toEqual([]);
  });
});

describe('two lists look the same to a client', () => {
  test('where their bytes are the same, whatever else is', () => {
    expect(
      sameShelf(shelf([tool('a'), 'x']), { ...shelf([tool('a')]), freshUntilMs: 99, scope: 'private' }),
    ).toBe(true);
    expect(sameShelf(shelf([tool('a')]), shelf([tool('a', '"x":1,')]))).toBe(false);
    expect(sameShelf(shelf([tool('a'), tool('b')]), shelf([tool('b'), tool('a')]))).toBe(false);
    expect(sameShelf(shelf([tool('a')]), shelf([tool('a'), tool('b')]))).toBe(false);
  });
});
