import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { run } from '../../src/cli/run.ts';
import { readClientFile } from '../../src/config/import-clients.ts';
import { planImport } from '../../src/config/import-plan.ts';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { parse } from '../config/parse-fixture.ts';
import { codeIn, page, pages, root, rowsOf, section } from './markdown.ts';

interface Block {
  readonly file: string;
  readonly language: string;
  readonly text: string;
}

const blocks: readonly Block[] = pages.flatMap((file) =>
  [...page(file).matchAll(/^```([a-z]+)\n([\s\S]*?)^```/gm)].map(([, language = '', text = '']) => ({
    file,
    language,
    text,
  })),
);
const named = (language: string) =>
  blocks
    .filter((block) => block.language === language)
    .map(({ file, text }) => [`${file}: ${text.split('\n')[0]}`, text] as const);

/** Examples of other programs' files, which deploy/ is tested with. */
const foreign = /^(?:scrape_configs:|# kustomization\.yaml)/;

describe('an example of a config', () => {
  const configs = named('yaml').filter(([, text]) => !foreign.test(text));

  test('is found in more than one page', () => expect(configs.length).toBeGreaterThan(1));

  test.each(configs)('%s… is one that mcpyard takes', (_, text) => {
    const config = parse(text.replace('sha256:…', hashOfKey('a-key')), {
      env: { TOKEN: 'a-token', METRICS_TOKEN: '0123456789abcdef' },
    });
    // One that is about something else has no servers.
    expect(config.warnings.filter((warning) => warning !== 'servers: none is in use')).toEqual([]);
    expect(config.disabled).toEqual([]);
  });
});

describe('a command in an example', () => {
  const commands = named('sh').flatMap(([, text]) =>
    text
      .replaceAll('\\\n', ' ')
      .split('\n')
      .flatMap((line) => {
        const [, words] = /(?:^|[;&] |sudo )(?:mcpyard|node dist\/main\.js) ([^#;|]*)/.exec(line) ?? [];
        return words === undefined ? [] : [words.trim()];
      }),
  );

  test('is found in more than one place', () => expect(commands.length).toBeGreaterThan(2));

  test.each(commands)('mcpyard %s has a usage and options that there are', async (line) => {
    const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? '');
    let said = '';
    const code = await run([...words, '--help'], {
      env: {},
      cwd: '/',
      out: () => undefined,
      err: (text) => {
        said += text;
      },
    });
    expect({ code, said }).toEqual({ code: 0, said: '' });
  });
});

describe('the set-up of a client in README.md', () => {
  const rows = rowsOf(section(page('README.md'), '## Which clients it serves'));
  const forms = rows.flatMap(([client = '', form]) =>
    codeIn(form)
      .filter((code) => code.startsWith('{'))
      .map((code) => [client, code] as const),
  );

  test('is there for Cursor and VS Code', () => expect(forms).toHaveLength(2));

  test.each(forms)('%s is a file that names this gateway', (_, code) => {
    const contents = readClientFile(JSON.parse(code), { file: '/p/mcp.json', cwd: '/p', home: '/' });
    if (contents === undefined) throw new Error('no file of a client');
    const steps = planImport([{ label: 'README.md', contents }], {
      config: {},
      force: false,
      directory: '/p',
      listen: parse('servers: {}').listen,
    });
    expect(steps).toMatchObject([{ action: 'skipped', notes: ['it is this gateway itself'] }]);
  });
});

describe('the pages', () => {
  test.each(pages)('%s names only files of deploy/ that there are', (file) => {
    const names = [...page(file).matchAll(/(?<![\w/.])deploy\/[\w./-]*\w/g)].map(([name]) => name);
    expect(names.filter((name) => !existsSync(path.join(root, name)))).toEqual([]);
  });
});
