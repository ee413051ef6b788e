import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { parse } from './parse-fixture.ts';

const root = path.resolve(import.meta.dirname, '../..');

describe('config.yaml of the repository', () => {
  test('serves two servers that are installed with it', async () => {
    const config = await loadConfig({ file: 'config.yaml', env: {}, cwd: root });
    expect(config.warnings).toEqual([]);
    expect(config.disabled).toEqual([]);
    expect(config.servers.map(({ name }) => name)).toEqual(['everything', 'memory']);
    for (const { target } of config.servers) {
      expect(target).toMatchObject({ kind: 'stdio', command: 'node', cwd: root });
      if (target.kind === 'stdio') expect(existsSync(path.join(root, target.args[0] ?? ''))).toBe(true);
    }
  });

  test('keeps the file of the memory server out of node_modules', async () => {
    const { servers } = await loadConfig({ file: 'config.yaml', env: {}, cwd: root });
    const target = servers.find(({ name }) => name === 'memory')?.target;
    if (target?.kind !== 'stdio') throw new Error('memory is no child');
    const script = path.join(root, target.args[0] ?? '');
    // The server reads a relative path from the folder of its own script.
    const file = path.resolve(path.dirname(script), target.env['MEMORY_FILE_PATH'] ?? '');
    expect(path.relative(root, file)).toBe(path.join('.cache', 'memory.jsonl'));
  });

  test('shows more servers in comments that can be taken in as they are', () => {
    const text = readFileSync(path.join(root, 'config.yaml'), 'utf8');
    const uncommented = text.replace(/^ {2}# (?=github:|issues:| )/gm, '  ');
    const { servers, disabled } = parse(uncommented, {
      env: { TOKEN: 'a-token' },
      files: { '/run/secrets/issues': 'a-key' },
    });
    expect(servers.map(({ name }) => name)).toEqual(['everything', 'memory', 'github', 'issues']);
    expect(disabled).toEqual([]);
    expect(servers.at(-1)).toMatchObject({ prefix: 'i__', tools: { rename: { get_issue: 'issue' } } });
  });
});
