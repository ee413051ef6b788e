import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { type JsonSchema, plainSchema } from '../../src/config/json-schema.ts';
import { limitNames } from '../../src/protocol/limits.ts';
import { codeIn, page, root, rowsOf, section } from './markdown.ts';

const limits = page('docs/limits.md');
const configurable = rowsOf(section(limits, '## Limits of the config'));
const fixed = rowsOf(section(limits, '## Fixed limits'));

const src = path.join(root, 'src');
const sources = new Map(
  readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => [file, readFileSync(path.join(src, file), 'utf8')] as const),
);

/** The schema of a key such as `servers.<name>.timeout`. */
const schemaOf = (key: string): JsonSchema =>
  key.split('.').reduce((schema: JsonSchema, part) => {
    const each = schema.additionalProperties;
    return schema.properties?.[part] ?? (typeof each === 'object' ? each : {});
  }, plainSchema());

const defaultOf = (schema: JsonSchema): string => String(schema['x-default'] ?? schema.default);

const units = new Map([
  ['ms', 1],
  ['s', 1000],
  ['hours', 3_600_000],
  ['KiB', 1024],
  ['MiB', 1024 ** 2],
]);

/** The first number of a cell, in milliseconds where it is a time and in bytes where it is a size. */
function amountIn(cell: string): number | undefined {
  const [, digits, unit = ''] = /([\d,]+)(?: ([A-Za-z]+))?/.exec(cell) ?? [];
  return digits === undefined ? undefined : Number(digits.replaceAll(',', '')) * (units.get(unit) ?? 1);
}

/** The value of `const name = 4 * 1024 ** 2`; undefined where it is no product of numbers. */
function amountOf(expression: string): number | undefined {
  if (!/^[\d_* ]+$/.test(expression)) return undefined;
  return expression
    .replaceAll(/(\d+) \*\* (\d+)/g, (_, base, power) => String(Number(base) ** Number(power)))
    .split('*')
    .reduce((product, factor) => product * Number(factor.replaceAll('_', '')), 1);
}

/** Constants of a module whose value is a number and whose name is that of a limit, as `file name`. */
const constants: ReadonlyMap<string, number> = new Map(
  [...sources].flatMap(([file, text]) =>
    [...text.matchAll(/^(?:export )?const (\w+(?:Max|Ms)) = (.+);$/gm)].flatMap(([, name, value = '']) => {
      const amount = amountOf(value);
      return amount === undefined ? [] : [[`${file} ${name}`, amount] as const];
    }),
  ),
);

/** Where work is cut into pieces or two ways of it meet: nothing that anybody can run into. */
const tuning = [
  'config/nearest.ts lengthMax',
  'downstream/respond.ts joinBytesMax',
  'policy/worker-allowances.ts lookMs',
  'protocol/answer-stream.ts keyBytesMax',
  'protocol/frames.ts pieceBytesMax',
  'protocol/short-copy.ts loopBytesMax',
  'protocol/sse.ts looseMax',
  'upstream/child.ts joinBytesMax',
  'upstream/framed-socket.ts joinBytesMax',
  'upstream/http-json.ts looseMax',
  'upstream/process-tree.ts pollMsMax',
  'workers/allowances.ts lookMs',
];

describe('docs/limits.md', () => {
  test('lists exactly the keys of limits, each with its default', () => {
    const told = configurable.map(([key, value]) => `${codeIn(key)[0]} ${codeIn(value)[0]}`);
    const known = Object.entries(schemaOf('limits').properties ?? {}).map(
      ([key, schema]) => `limits.${key} ${defaultOf(schema)}`,
    );
    expect(known.length).toBeGreaterThan(5);
    expect(told.filter((row) => row.startsWith('limits.')).toSorted()).toEqual(known.toSorted());
  });

  test('gives the defaults of the other keys that it names', () => {
    const others = configurable.filter(([key = '']) => !key.startsWith('`limits.'));
    expect(others.length).toBeGreaterThan(5);
    for (const [key = '', value = ''] of others) {
      const [name = ''] = codeIn(key);
      expect(`${name} ${value.replaceAll('`', '')}`).toBe(`${name} ${defaultOf(schemaOf(name))}`);
    }
  });

  test('counts by exactly the labels that there are', () => {
    const counters = configurable.flatMap(([, , , , counter]) => codeIn(counter));
    const inText = [
      ...configurable.map(([, , , reached]) => reached),
      ...fixed.map(([, , reached]) => reached),
    ];
    const told = inText.flatMap((cell = '') =>
      [...cell.matchAll(/counter `(\w+)`/g)].map(([, label]) => label),
    );
    expect([...new Set([...counters, ...told])].toSorted()).toEqual([...limitNames]);
  });

  test('knows no label that nothing counts by', () => {
    const users = [...sources].flatMap(([file, text]) => (file === 'protocol/limits.ts' ? [] : [text]));
    const idle = limitNames.filter((label) => !users.some((text) => text.includes(`'${label}'`)));
    expect(idle).toEqual([]);
  });

  test('gives the values of the constants that it names', () => {
    const named = fixed.flatMap(([, value = '', , where]) => {
      const [file = '', name] = codeIn(where);
      return name === undefined ? [] : [{ file, name, value }];
    });
    expect(named.length).toBeGreaterThan(50);
    for (const { file, name, value } of named) {
      const constant = `${file} ${name}`;
      expect(sources.get(file) ?? '', constant).toContain(`const ${name} = `);
      const amount = constants.get(constant);
      if (amount !== undefined) expect(`${constant} ${amountIn(value)}`).toBe(`${constant} ${amount}`);
    }
  });

  test('leaves out no constant that is named like a limit', () => {
    const named = fixed.map(([, , , where]) => codeIn(where).join(' '));
    const missing = [...constants.keys()].filter((one) => !named.includes(one) && !tuning.includes(one));
    expect(missing, 'add these to docs/limits.md').toEqual([]);
  });
});
