import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { shellOperators, splitCommand } from '../../src/config/command.ts';
import type { Part } from '../../src/config/fill.ts';

const written = (text: string): readonly Part[] => [{ text, from: 'config' }];

const argvOf = (parts: readonly Part[]): readonly string[] => {
  const split = splitCommand(parts);
  if (split.kind === 'bad') throw new Error(split.message);
  return split.argv;
};

describe('a command line of the config', () => {
  test.each([
    ['npx -y server', ['npx', '-y', 'server']],
    ['  a \t b\n c ', ['a', 'b', 'c']],
    ['', []],
    ['   ', []],
    [`a 'b c' "d e"`, ['a', 'b c', 'd e']],
    [`a '' ""`, ['a', '', '']],
    [`--x="a b"'c d'e`, ['--x=a bc de']],
    [`a\\ b c`, ['a b', 'c']],
    [`'a\\b' "a\\b"`, ['a\\b', 'a\\b']],
    [`"a\\"b" "a\\\\b" "a\\$b"`, ['a"b', 'a\\b', 'a$b']],
    [`"it's" 'say "x"'`, [`it's`, 'say "x"']],
    ['a\\\nb "c\\\nd"', ['ab', 'cd']],
    ['"a\\\\\nb"', ['a\\\nb']],
    ['echo $HOME ~ *.txt `id` $(id)', ['echo', '$HOME', '~', '*.txt', '`id`', '$(id)']],
    ['a && b | c > d', ['a', '&&', 'b', '|', 'c', '>', 'd']],
    ['a # b', ['a', '#', 'b']],
    ['ä "ö ü" 😀', ['ä', 'ö ü', '😀']],
  ])('%j is split like a shell does, and nothing is expanded', (line, argv) => {
    expect(argvOf(written(line))).toEqual(argv);
  });

  test.each([
    [`a 'b`, "a quote (') is not closed"],
    [`a "b`, 'a quote (") is not closed'],
    [`a "b\\"`, 'a quote (") is not closed'],
    ['a b\\', 'ends in a backslash'],
    ['a \0', 'holds a NUL character'],
  ])('%j is refused', (line, message) => {
    expect(splitCommand(written(line))).toEqual({ kind: 'bad', message });
  });

  test('what is filled in stays one word and keeps its quotes and backslashes', () => {
    const parts: readonly Part[] = [
      { text: 'run --token=', from: 'config' },
      { text: `a b"c'd\\e`, from: 'source' },
      { text: ' "x ', from: 'config' },
      { text: '"', from: 'default' },
      { text: '" ', from: 'config' },
      { text: '', from: 'source' },
      { text: ` '`, from: 'config' },
      { text: '', from: 'source' },
      { text: `'`, from: 'config' },
    ];
    expect(argvOf(parts)).toEqual(['run', `--token=a b"c'd\\e`, 'x "', '']);
  });

  const anyWord = fc.string({ unit: 'binary', maxLength: 12 }).filter((word) => !word.includes('\0'));
  const single = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;
  const double = (word: string): string => `"${word.replace(/["\\$`]/g, '\\$&')}"`;

  test('every argv that is quoted as a shell wants it comes back', () => {
    const quoted = fc.tuple(anyWord, fc.constantFrom(single, double), fc.constantFrom(' ', '\t', '  \n '));
    fc.assert(
      fc.property(fc.array(quoted, { maxLength: 6 }), (words) => {
        const line = words.map(([word, quote, space]) => quote(word) + space).join('');
        expect(argvOf(written(line))).toEqual(words.map(([word]) => word));
      }),
    );
  });

  test('bare words without special characters come back', () => {
    const bare = fc.stringMatching(/^[A-Za-z0-9_\-./=:,@%+$*;|&<>(){}[\]~#!?]{1,10}$/);
    fc.assert(
      fc.property(fc.array(bare, { maxLength: 6 }), (words) => {
        expect(argvOf(written(words.join(' ')))).toEqual(words);
      }),
    );
  });

  test('a value that is filled in never changes how many words there are', () => {
    fc.assert(
      fc.property(anyWord, (value) => {
        const parts: readonly Part[] = [
          { text: 'a --x=', from: 'config' },
          { text: value, from: 'source' },
          { text: ' b', from: 'config' },
        ];
        expect(argvOf(parts)).toEqual(['a', `--x=${value}`, 'b']);
      }),
    );
  });
});

test('words that only a shell would understand are told, once each', () => {
  expect(shellOperators(['a', '&&', 'b', '&&', 'c', '|', 'x|y', '2>&1'])).toEqual(['&&', '|', '2>&1']);
});
