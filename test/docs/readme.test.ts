import { describe, expect, test } from 'vitest';
import { run } from '../../src/cli/run.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { broken, codeIn, linksOf, page, pages, rowsOf, section } from './markdown.ts';

const readme = page('README.md');

/** The commands that the program has, as its own help lists them. */
async function commands(): Promise<readonly string[]> {
  let help = '';
  await run(['--help'], {
    env: {},
    cwd: '/',
    out: (text) => {
      help += text;
    },
    err: () => undefined,
  });
  return [...help.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name ?? '');
}

describe('the pages', () => {
  test.each(pages)('%s has only links that lead somewhere', (file) => {
    const wrong = linksOf(page(file)).flatMap((target) => broken(file, target) ?? []);
    expect(wrong).toEqual([]);
  });

  test('a link to a missing page or heading is noticed', () => {
    expect(broken('README.md', 'docs/nowhere.md')).toContain('does not exist');
    expect(broken('README.md', '#nowhere')).toContain('no such heading');
  });

  test.each(pages)('%s names only commands that there are', async (file) => {
    const named = [...page(file).matchAll(/`(?:mcpyard|node dist\/main\.js) ([a-z]+)/g)].map(
      ([, name]) => name,
    );
    const known = await commands();
    expect(named.filter((name) => !known.includes(name ?? ''))).toEqual([]);
  });
});

describe('README.md', () => {
  test('has a row for each command', async () => {
    const named = rowsOf(section(readme, '## Commands')).flatMap(([command]) => codeIn(command));
    const known = await commands();
    expect(known).toContain('serve');
    expect(named.toSorted()).toEqual(known.map((name) => `mcpyard ${name}`).toSorted());
  });

  test('shows a config that mcpyard takes', () => {
    const [, yaml = ''] = /^```yaml\n([\s\S]*?)^```/m.exec(readme) ?? [];
    const config = parseConfig(yaml, {
      file: '/srv/config.yaml',
      env: { TOKEN: 'a-token' },
      readSecretFile: () => '',
    });
    expect(config.servers.map(({ name }) => name)).toEqual(['memory', 'github']);
    expect(config.warnings).toEqual([]);
  });
});
