/** What the schema has against a value, in words for the person who wrote the file. Values never show up in them. */
import type { z } from 'zod';
import { knownKeys } from './json-schema.ts';
import { nearest } from './nearest.ts';
import type { Path } from './tree.ts';

/** A mistake at a path; `at` says whether the key or the value there is meant. */
export interface Complaint {
  readonly path: Path;
  readonly at: 'key' | 'value';
  readonly message: string;
}

type Issue = z.core.$ZodIssue;

const expectations: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

function kindOf(value: unknown): string {
  if (value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  return expectations[typeof value] ?? typeof value;
}

function valueAt(tree: unknown, path: readonly PropertyKey[]): unknown {
  let value = tree;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/** How a message begins that the schema has none of its own for. */
const unsaid = 'Invalid input';

function typeMessage(expected: string, said: string, value: unknown): string {
  if (value === undefined) return 'is missing';
  const found = typeof value === 'boolean' ? String(value) : kindOf(value);
  // What knows its form better than that it is a string: quotes alone would not help.
  if (!said.startsWith(unsaid)) return `${said}, found ${found}`;
  const hint =
    expected === 'string' && ['number', 'boolean'].includes(typeof value) ? ': put it in quotes' : '';
  return `expected ${expectations[expected] ?? expected}, found ${found}${hint}`;
}

/** Of the forms that a value may have, the complaints about the one that it comes nearest to: those that lie deepest. */
function nearestBranch(branches: readonly (readonly Issue[])[]): readonly Issue[] {
  const depth = (issues: readonly Issue[]) => Math.max(0, ...issues.map(({ path }) => path.length));
  return branches.toSorted((a, b) => depth(b) - depth(a))[0] ?? [];
}

const isAboutRoot = (issue: Issue): boolean => issue.code === 'invalid_type' && issue.path.length === 0;

function unknownKey(key: string, path: Path): Complaint {
  const known = knownKeys(path);
  const meant = nearest(key, known);
  const hint = meant === undefined ? `known here: ${known.join(', ')}` : `did you mean \`${meant}\`?`;
  return { path: [...path, key], at: 'key', message: `unknown key; ${hint}` };
}

function complaintsAbout(issue: Issue, tree: unknown, above: Path): readonly Complaint[] {
  const path = [...above, ...issue.path.map((key) => (typeof key === 'number' ? key : String(key)))];
  const of = (message: string, at: Complaint['at'] = 'value'): Complaint => ({ path, at, message });
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => unknownKey(key, path));
    case 'invalid_key':
      return [of(issue.issues[0]?.message ?? 'is not allowed as a key', 'key')];
    case 'invalid_value':
      return [of(`expected one of ${issue.values.map(String).join(', ')}`)];
    case 'invalid_union': {
      if (issue.message !== unsaid) return [of(issue.message)];
      if (issue.errors.every((branch) => branch.some(isAboutRoot))) {
        const expected = issue.errors.flatMap(([first]) =>
          first?.code === 'invalid_type' ? [first.expected] : [],
        );
        const forms = expected.map((type) => expectations[type] ?? type);
        return [of(`expected ${forms.join(' or ')}, found ${kindOf(valueAt(tree, path))}`)];
      }
      return nearestBranch(issue.errors).flatMap((inner) => complaintsAbout(inner, tree, path));
    }
    case 'invalid_type': {
      const value = valueAt(tree, path);
      return [
        of(
          typeof value === 'number' && issue.expected === 'int'
            ? issue.message
            : typeMessage(issue.expected, issue.message, value),
        ),
      ];
    }
    default:
      return [of(issue.message)];
  }
}

/** Every complaint of the schema about a tree, unknown keys one by one. */
export const complaintsOf = (error: z.ZodError, tree: unknown): readonly Complaint[] =>
  error.issues.flatMap((issue) => complaintsAbout(issue, tree, []));
