import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

const src = path.resolve(import.meta.dirname, '../src');

/** Who may import whom; a folder may always import itself. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  config: ['protocol'],
  observe: ['protocol', 'config'],
  auth: ['protocol', 'config', 'observe'],
  policy: ['protocol', 'config', 'observe'],
  upstream: ['protocol', 'config', 'observe', 'auth'],
  catalog: ['protocol', 'config', 'observe', 'auth', 'upstream'],
  gateway: ['protocol', 'config', 'observe', 'auth', 'upstream', 'policy', 'catalog'],
  downstream: ['protocol', 'config', 'observe', 'auth', 'gateway'],
  admin: ['protocol', 'config', 'observe', 'auth', 'gateway'],
  workers: [
    ...['app', 'protocol', 'config', 'observe', 'auth', 'upstream', 'policy', 'catalog', 'gateway'],
    ...['downstream', 'admin'],
  ],
  cli: ['app', 'workers', 'config', 'observe', 'protocol'],
};
/** Files beside the folders: the composition root may import all but what starts it. */
const root = ['app', ...Object.keys(allowed).filter((folder) => folder !== 'cli' && folder !== 'workers')];

const linesMax = 400;

const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file, text: readFileSync(path.join(src, file), 'utf8') }));

const folderOf = (file: string): string =>
  file.includes(path.sep) ? (file.split(path.sep)[0] ?? '') : 'app';

const importsOf = (file: string, text: string): string[] =>
  [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, target]) =>
    path.relative(src, path.resolve(src, path.dirname(file), target ?? '')),
  );

function mayImport(from: string, to: string): boolean {
  if (from === to) return true;
  if (from === 'app') return root.includes(to) || to === 'cli';
  return (allowed[from] ?? []).includes(to);
}

describe('the source', () => {
  test('has files to look at, in folders that the table knows', () => {
    expect(files.length).toBeGreaterThan(50);
    const folders = new Set(files.map(({ file }) => folderOf(file)));
    expect([...folders].filter((folder) => folder !== 'app' && !Object.hasOwn(allowed, folder))).toEqual([]);
  });

  test('imports only along the table', () => {
    const wrong = files.flatMap(({ file, text }) =>
      importsOf(file, text)
        .filter((target) => !mayImport(folderOf(file), folderOf(target)))
        .map((target) => `${file} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  test('never joins downstream and upstream', () => {
    const wrong = files.filter(
      ({ file, text }) =>
        folderOf(file) === 'downstream' &&
        importsOf(file, text).some((target) => folderOf(target) === 'upstream'),
    );
    expect(wrong.map(({ file }) => file)).toEqual([]);
  });

  test('lets only the entry point import the command line', () => {
    const wrong = files.filter(
      ({ file, text }) =>
        folderOf(file) !== 'cli' &&
        file !== 'main.ts' &&
        importsOf(file, text).some((target) => folderOf(target) === 'cli'),
    );
    expect(wrong.map(({ file }) => file)).toEqual([]);
  });

  test(`has no file over ${linesMax} lines, and nine in ten under 250`, () => {
    const sizes = files.map(({ file, text }) => ({ file, lines: text.split('\n').length }));
    expect(sizes.filter(({ lines }) => lines > linesMax)).toEqual([]);
    expect(sizes.filter(({ lines }) => lines > 250).length).toBeLessThanOrEqual(sizes.length / 10);
  });

  test('begins each file with a sentence about it', () => {
    const silent = files.filter(({ text }) => !/^(?:#!.*\n)?\/\*\*/.test(text));
    expect(silent.map(({ file }) => file)).toEqual([]);
  });

  test('has no default exports, barrels, or names that say nothing', () => {
    const wrong = files.filter(
      ({ file, text }) =>
        /^export default/m.test(text) ||
        /^export \* from/m.test(text) ||
        /(?:manager|helper|utils|service|common|base)\.ts$/i.test(file),
    );
    expect(wrong.map(({ file }) => file)).toEqual([]);
  });
});
