import { describe, expect, test } from 'vitest';
import { outgoingParamHeaders, paramHeadersOf, paramMismatch } from '../../src/protocol/param-headers.ts';

const schemaOf = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });
const annotated = (name: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': name });

describe('a definition is valid', () => {
  test.each([
    ['without annotations', schemaOf({ a: { type: 'string' } }), []],
    ['without properties', { type: 'object' }, []],
    ['that is no schema at all', true, []],
    ['on a string', schemaOf({ a: annotated('Region') }), [['mcp-param-region', ['a']]]],
    ['on an integer', schemaOf({ a: annotated('N', 'integer') }), [['mcp-param-n', ['a']]]],
    ['on a boolean', schemaOf({ a: annotated('B', 'boolean') }), [['mcp-param-b', ['a']]]],
    [
      'on properties of properties',
      schemaOf({ a: schemaOf({ b: schemaOf({ c: annotated('C') }) }) }),
      [['mcp-param-c', ['a', 'b', 'c']]],
    ],
    [
      'on several',
      schemaOf({ a: annotated('A'), b: annotated('B') }),
      [
        ['mcp-param-a', ['a']],
        ['mcp-param-b', ['b']],
      ],
    ],
    ['with every character of a token', schemaOf({ a: annotated("!#$%&'*+-.^_`|~0aZ") }), undefined],
    [
      'on a property that is called like the annotation',
      schemaOf({ 'x-mcp-header': { type: 'string' } }),
      [],
    ],
    [
      'on a property called properties',
      schemaOf({ properties: annotated('P') }),
      [['mcp-param-p', ['properties']]],
    ],
    [
      'on a property called __proto__',
      JSON.parse('{"properties":{"__proto__":{"type":"string","x-mcp-header":"P"}}}'),
      [['mcp-param-p', ['__proto__']]],
    ],
    [
      'where the annotation is data only',
      schemaOf({
        a: {
          type: 'object',
          default: annotated('A'),
          const: annotated('A'),
          enum: [annotated('A')],
          examples: [annotated('A')],
        },
      }),
      [],
    ],
  ])('%s', (_, schema, headers) => {
    const read = paramHeadersOf(schema);
    expect(read.kind).toBe('valid');
    if (headers !== undefined && read.kind === 'valid')
      expect(read.headers.map(({ header, path }) => [header, path])).toEqual(headers);
  });
});

describe('a definition is invalid', () => {
  test.each([
    ['with an empty name', schemaOf({ a: annotated('') })],
    ['with a space in the name', schemaOf({ a: annotated('My Region') })],
    ['with a colon in the name', schemaOf({ a: annotated('Region:') })],
    ['with a line end in the name', schemaOf({ a: annotated('Region\r\nX') })],
    ['with a line end after the name', schemaOf({ a: annotated('Region\n') })],
    ['with letters beyond ASCII in the name', schemaOf({ a: annotated('Région') })],
    ['with a name that is no string', schemaOf({ a: annotated(7) })],
    ['with a name that is null', schemaOf({ a: annotated(null) })],
    ['with one name twice', schemaOf({ a: annotated('R'), b: annotated('R') })],
    [
      'with one name twice in another case, in another depth',
      schemaOf({ a: annotated('Region'), b: schemaOf({ c: annotated('REGION') }) }),
    ],
    ['on a number', schemaOf({ a: annotated('N', 'number') })],
    ['on an array', schemaOf({ a: annotated('N', 'array') })],
    ['on an object', schemaOf({ a: annotated('N', 'object') })],
    ['on null', schemaOf({ a: annotated('N', 'null') })],
    ['on several types', schemaOf({ a: annotated('N', ['string', 'null']) })],
    ['on no type', schemaOf({ a: { 'x-mcp-header': 'N' } })],
    ['on the root', { ...schemaOf({}), 'x-mcp-header': 'N' }],
    ['below items', schemaOf({ a: { type: 'array', items: annotated('N') } })],
    ['below prefixItems', schemaOf({ a: { type: 'array', prefixItems: [annotated('N')] } })],
    ['below properties of items', schemaOf({ a: { type: 'array', items: schemaOf({ b: annotated('N') }) } })],
    ['below additionalProperties', schemaOf({}, { additionalProperties: annotated('N') })],
    ['below patternProperties', schemaOf({}, { patternProperties: { '^a': annotated('N') } })],
    ['below oneOf', schemaOf({}, { oneOf: [schemaOf({ a: annotated('N') })] })],
    ['below anyOf of a property', schemaOf({ a: { anyOf: [annotated('N')] } })],
    ['below allOf', schemaOf({}, { allOf: [schemaOf({ a: annotated('N') })] })],
    ['below not', schemaOf({}, { not: schemaOf({ a: annotated('N') }) })],
    ['below if', schemaOf({}, { if: schemaOf({ a: annotated('N') }) })],
    ['below then', schemaOf({}, Object.fromEntries([['then', schemaOf({ a: annotated('N') })]]))],
    ['below else', schemaOf({}, { else: schemaOf({ a: annotated('N') }) })],
    ['behind a $ref', schemaOf({ a: { $ref: '#/$defs/r' } }, { $defs: { r: annotated('N') } })],
    ['beside valid ones', schemaOf({ a: annotated('A'), b: { type: 'array', items: annotated('B') } })],
  ])('%s', (_, schema) => {
    const read = paramHeadersOf(schema);
    expect(read.kind).toBe('invalid');
    expect(read.kind === 'invalid' && read.reason.length).toBeGreaterThan(10);
  });

  test('where it is too large to be looked through', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 25_000 }, (_, i) => [`p${i}`, { type: 'string' }]),
    );
    expect(paramHeadersOf(schemaOf(properties)).kind).toBe('invalid');
  });
});

const definedBy = (schema: unknown) => {
  const read = paramHeadersOf(schema);
  if (read.kind === 'invalid') throw new Error(read.reason);
  return read.headers;
};
const defined = definedBy(
  schemaOf({
    region: annotated('Region'),
    count: annotated('Count', 'integer'),
    dry: annotated('Dry', 'boolean'),
    where: schemaOf({ city: annotated('City') }),
  }),
);
const sentHeaders = (headers: Readonly<Record<string, string>>) => new Map(Object.entries(headers));

describe('headers agree with the arguments', () => {
  test.each([
    ['none where no argument is there', {}, {}],
    ['none where there are no arguments at all', undefined, {}],
    ['none where the argument is null', { region: null }, {}],
    ['none where the way to the argument ends early', { where: 'here' }, {}],
    ['a text', { region: 'us-west1' }, { 'mcp-param-region': 'us-west1' }],
    ['a text in Base64', { region: 'Zürich' }, { 'mcp-param-region': '=?base64?WsO8cmljaA==?=' }],
    ['an empty text', { region: '' }, { 'mcp-param-region': '' }],
    ['a nested text', { where: { city: 'Bern' } }, { 'mcp-param-city': 'Bern' }],
    ['an integer', { count: 42 }, { 'mcp-param-count': '42' }],
    ['an integer with a fraction of zero', { count: 42 }, { 'mcp-param-count': '42.0' }],
    ['a negative integer', { count: -7 }, { 'mcp-param-count': '-7' }],
    ['an integer in Base64', { count: 42 }, { 'mcp-param-count': '=?base64?NDI=?=' }],
    ['a boolean', { dry: false }, { 'mcp-param-dry': 'false' }],
    ['headers that nobody has defined', {}, { 'mcp-param-other': 'x' }],
    [
      'all at once',
      { region: 'a', count: 1, dry: true },
      { 'mcp-param-region': 'a', 'mcp-param-count': '1', 'mcp-param-dry': 'true' },
    ],
  ])('%s', (_, args, headers) => {
    expect(paramMismatch(defined, sentHeaders(headers), args)).toBeUndefined();
  });
});

describe('headers contradict the arguments', () => {
  test.each([
    ['a missing header', { region: 'a' }, {}, 'Mcp-Param-Region'],
    ['a missing header of an integer', { count: 0 }, {}, 'Mcp-Param-Count'],
    ['a missing header of false', { dry: false }, {}, 'Mcp-Param-Dry'],
    ['a header without its argument', {}, { 'mcp-param-region': 'a' }, 'Mcp-Param-Region'],
    ['a header for null', { region: null }, { 'mcp-param-region': 'null' }, 'Mcp-Param-Region'],
    ['another text', { region: 'a' }, { 'mcp-param-region': 'b' }, 'Mcp-Param-Region'],
    ['another case', { region: 'a' }, { 'mcp-param-region': 'A' }, 'Mcp-Param-Region'],
    ['broken Base64', { region: 'a' }, { 'mcp-param-region': '=?base64?YQ?=' }, 'Mcp-Param-Region'],
    ['raw Latin-1', { region: 'ä' }, { 'mcp-param-region': '\u00e4' }, 'Mcp-Param-Region'],
    ['another number', { count: 42 }, { 'mcp-param-count': '43' }, 'Mcp-Param-Count'],
    ['a number that is no decimal', { count: 42 }, { 'mcp-param-count': '0x2a' }, 'Mcp-Param-Count'],
    ['an empty header for zero', { count: 0 }, { 'mcp-param-count': '' }, 'Mcp-Param-Count'],
    [
      'a text that is only numerically the same',
      { region: '42' },
      { 'mcp-param-region': '42.0' },
      'Mcp-Param-Region',
    ],
    ['a text with zeros before it', { region: '7' }, { 'mcp-param-region': '007' }, 'Mcp-Param-Region'],
    ['a boolean in capitals', { dry: true }, { 'mcp-param-dry': 'True' }, 'Mcp-Param-Dry'],
    ['a boolean as a number', { dry: true }, { 'mcp-param-dry': '1' }, 'Mcp-Param-Dry'],
    ['another nested text', { where: { city: 'a' } }, { 'mcp-param-city': 'b' }, 'Mcp-Param-City'],
    [
      'an argument that is inherited only',
      Object.create({ region: 'a' }),
      { 'mcp-param-region': 'a' },
      'Mcp-Param-Region',
    ],
  ])('%s', (_, args, headers, name) => {
    expect(paramMismatch(defined, sentHeaders(headers), args)).toContain(name);
  });
});

describe('headers for an upstream', () => {
  test('are made anew from the arguments, spelled as the definition spells them', () => {
    const sent = sentHeaders({ 'mcp-param-count': '42.0', 'mcp-param-region': '=?base64?YQ==?=' });
    expect(outgoingParamHeaders(defined, sent, { region: 'a', count: 42, dry: true })).toEqual([
      'Mcp-Param-Region',
      'a',
      'Mcp-Param-Count',
      '42',
      'Mcp-Param-Dry',
      'true',
    ]);
  });

  test('are encoded where the value needs it', () => {
    expect(outgoingParamHeaders(defined, new Map(), { region: ' a\r\nX: y' })).toEqual([
      'Mcp-Param-Region',
      '=?base64?IGENClg6IHk=?=',
    ]);
  });

  test('are left out for null and for what is absent', () => {
    expect(outgoingParamHeaders(defined, new Map(), { region: null })).toEqual([]);
    expect(outgoingParamHeaders(defined, new Map(), undefined)).toEqual([]);
  });

  test('pass as they came where nobody has defined them', () => {
    const sent = sentHeaders({ 'mcp-param-tenant': '=?base64?w6Q=?=', 'mcp-param-region': 'a' });
    expect(outgoingParamHeaders(defined, sent, { region: 'a' })).toEqual([
      'Mcp-Param-Region',
      'a',
      'mcp-param-tenant',
      '=?base64?w6Q=?=',
    ]);
  });
});
