import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { own } from '../../src/protocol/errors.ts';
import { codeIn, page, pages, root, rowsOf } from './markdown.ts';

const manifest = (file: string): Record<string, unknown> =>
  JSON.parse(readFileSync(path.join(root, file), 'utf8')) as Record<string, unknown>;

const decisions = pages.filter((file) => file.startsWith(path.join('docs', 'decisions')));

describe('docs/decisions', () => {
  test.each(decisions)('%s says what was decided, what was not, and what follows', (file) => {
    const headings = [...page(file).matchAll(/^## (.+)$/gm)].map(([, title]) => title);
    expect(headings).toEqual(['Context', 'Decision', 'What was not chosen', 'Consequences']);
    const [, number = ''] = /(\d{4})-/.exec(file) ?? [];
    expect(page(file)).toMatch(new RegExp(`^# ${Number(number)}\\. `));
  });

  test('the dependencies are those of the package, with their versions and licences', () => {
    const told = rowsOf(page('docs/decisions/0003-dependencies.md')).map(([name, version, licence]) =>
      [codeIn(name)[0], version, licence].join(' '),
    );
    const pinned = Object.entries(manifest('package.json')['dependencies'] as Record<string, string>);
    const known = pinned.map(([name, version]) => {
      const { license } = manifest(`node_modules/${name}/package.json`);
      return [name, version, license].join(' ');
    });
    expect(told.toSorted()).toEqual(known.toSorted());
  });

  test('the error codes are those of the code', () => {
    const told = rowsOf(page('docs/decisions/0008-error-codes.md')).map(
      ([code, name]) => `${code} ${codeIn(name)[0]}`,
    );
    expect(told.toSorted()).toEqual(
      Object.entries(own)
        .map(([name, code]) => `${code} ${name}`)
        .toSorted(),
    );
  });
});
