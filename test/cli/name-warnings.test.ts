import path from 'node:path';
import { expect, test } from 'vitest';
import { nameWarnings } from '../../src/cli/name-warnings.ts';
import type { NamedItem } from '../../src/names.ts';
import { runHere } from './here.ts';
import { createFolder, rawServer, run } from './program.ts';

const item = (name: string, kind: NamedItem['kind'] = 'tools'): NamedItem => ({
  kind,
  name,
  server: 'a',
  localName: name,
  whole: name,
});
const warningsOn = (...listed: readonly NamedItem[]) => nameWarnings({ listed, taken: [] });

test.each(['a__b', 'A-1', 'x'.repeat(50)])('the name %j is fine everywhere', (name) =>
  expect(warningsOn(item(name))).toEqual([]),
);

test.each(['a.b', 'a b', 'ü', 'a/b'])('the name %j is warned of, since model APIs refuse it', (name) => {
  expect(warningsOn(item(name))).toEqual([expect.stringContaining(`_ and -): ${name};`)]);
});

test('names that are too long behind the prefix of a client are warned of, a few as examples', () => {
  const names = Array.from({ length: 5 }, (_, at) => String(at).repeat(51));
  expect(warningsOn(...names.map((name) => item(name)))).toEqual([
    expect.stringMatching(/^5 tools .*: 0{51}, 1{51}, 2{51} and 2 more; .*`names.max`$/),
  ]);
});

test('more tools than clients take are counted', () => {
  const tools = (count: number) => Array.from({ length: count }, (_, at) => item(`t${at}`));
  expect(warningsOn(...tools(128))).toEqual([]);
  expect(warningsOn(...tools(129))).toEqual([expect.stringMatching(/^129 tools in all/)]);
});

test('prompts and URIs go to no model API', () => {
  expect(warningsOn(item('a b', 'prompts'), item('file:///x', 'resources'))).toEqual([]);
});

test('mcpyard check warns of names, in words and in JSON, and exits 0 all the same', async () => {
  const folder = createFolder();
  try {
    folder.write({
      listen: '127.0.0.1:0',
      admin: '127.0.0.1:0',
      stateDir: 'state',
      names: { separator: '.' },
      servers: { one: rawServer(path.join(folder.folder, 'log')) },
    });
    const plain = await run(['check'], { cwd: folder.folder });
    expect(plain.code).toBe(0);
    expect(plain.stderr).toMatch(/^warning: 17 tools with characters .*: one\.echo, /);
    const json = await runHere(['check', '--json'], folder.folder);
    expect(JSON.parse(json.stdout)).toMatchObject({
      ok: true,
      warnings: [expect.stringMatching(/^17 tools with characters/)],
    });
  } finally {
    folder.remove();
  }
});
