import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fillText, fillTree } from '../../src/config/fill.ts';

const files: Readonly<Record<string, string>> = {
  '/run/token': 'from-file\n',
  '/run/crlf': 'a\r\nb\r\n',
  '/run/spaces': ' x ',
  '/run/empty': '',
};

const sources = {
  env: { NAME: 'value', EMPTY: '', NESTED: `\${NAME}`, _x9: 'low', DOLLAR: `$& $1 $' $\${` },
  readSecretFile: (path: string) => {
    const text = files[path];
    if (text === undefined) throw new Error('ENOENT');
    return text;
  },
};

const fill = (text: string) => fillText(text, sources);
const textOf = (text: string) =>
  fill(text)
    .parts.map((part) => part.text)
    .join('');

describe('a string value', () => {
  test.each([
    ['', ''],
    ['plain', 'plain'],
    [`\${NAME}`, 'value'],
    [`a \${NAME} b \${_x9}`, 'a value b low'],
    [`\${NAME}\${NAME}`, 'valuevalue'],
    [`\${EMPTY}`, ''],
    [`\${NAME:-other}`, 'value'],
    [`\${NONE:-other}`, 'other'],
    [`\${EMPTY:-other}`, 'other'],
    [`\${NONE:-}`, ''],
    [`\${NONE:-a:-b c"d'e}`, 'a:-b c"d\'e'],
    [`\${file:/run/token}`, 'from-file'],
    [`\${file:/run/crlf}`, 'a\r\nb'],
    [`\${file:/run/spaces}`, ' x '],
    [`\${file:/run/empty}`, ''],
    [`$\${NAME}`, `\${NAME}`],
    [`$$\${NAME}`, `$\${NAME}`],
    [`$\${`, `\${`],
    ['cost $5, $HOME, $$ and {x}', 'cost $5, $HOME, $$ and {x}'],
    [`\${NESTED}`, `\${NAME}`],
    [`\${DOLLAR}`, `$& $1 $' $\${`],
    [`$\${\${NAME}}`, `\${value}`],
  ])('%j becomes %j', (text, filled) => {
    expect(textOf(text)).toBe(filled);
    expect(fill(text).problems).toEqual([]);
  });

  test.each([
    [`\${NONE}`, /variable NONE is not set/],
    [`\${file:/run/none}`, /\/run\/none can't be read \(ENOENT\)/],
    [`\${}`, /\$\{\} is no /],
    [`\${1X}`, /is no /],
    [`\${NAME-default}`, /is no /],
    [`\${NAME }`, /is no /],
    [`\${input:token}`, /\$\{input:token\} is no /],
    [`\${A:-\${B}}`, /is no /],
    [`a \${NAME`, /no closing brace/],
  ])('%j can not be filled in', (text, message) => {
    const { problems } = fill(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(message);
  });

  test('every problem in one string is told', () => {
    expect(fill(`\${A} \${B} \${NAME}`).problems).toEqual([
      'the variable A is not set',
      'the variable B is not set',
    ]);
  });

  test('a value from the environment comes through whatever it holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        const { parts } = fillText(`<\${X}>`, { ...sources, env: { X: value } });
        expect(parts.map(({ text }) => text).join('')).toBe(`<${value}>`);
      }),
    );
  });
});

describe('a tree', () => {
  test('is filled in its string values only, and says where problems are', () => {
    const key = `\${NAME}`;
    const tree = { [key]: { list: [`\${NAME}`, 5, true, null, `\${NONE}`] }, n: 1 };
    expect(fillTree(tree, sources)).toEqual({
      value: { [key]: { list: ['value', 5, true, null, ''] }, n: 1 },
      problems: [{ path: [key, 'list', 4], message: 'the variable NONE is not set' }],
      fromSources: ['value'],
    });
  });

  test('tells what came from outside, but not what the config itself says', () => {
    const tree = { a: `\${NAME} \${NONE:-own}`, b: `\${file:/run/token}`, c: 'plain' };
    expect(fillTree(tree, sources).fromSources).toEqual(['value', 'from-file']);
  });
});
