import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runHere } from './here.ts';
import { createFolder, isAlive, rawServer, run, startedPids } from './program.ts';

const anywhere = { listen: '127.0.0.1:0', admin: '127.0.0.1:0', stateDir: 'state' };
let folder: ReturnType<typeof createFolder>;
let log: string;

beforeEach(() => {
  folder = createFolder();
  log = path.join(folder.folder, 'log');
});
afterEach(() => folder.remove());

const explain = (...args: readonly string[]) => runHere(['explain', ...args], folder.folder);

describe('mcpyard explain', () => {
  test('says whose a tool, a prompt or a resource is and why it is called so, and leaves no process', async () => {
    folder.write({
      ...anywhere,
      servers: {
        one: { ...rawServer(log), prefix: 'o', tools: { rename: { echo: 'say' } } },
        two: { ...rawServer(log), prefix: 'o' },
      },
    });
    const renamed = await run(['explain', 'o__say'], { cwd: folder.folder });
    expect(renamed).toMatchObject({ code: 0, stderr: '' });
    expect(renamed.stdout.split('\n')).toEqual([
      'o__say: tool `echo` of server one',
      '  `o__` is `servers.one.prefix` and `names.separator`',
      '  `servers.one.tools.rename` calls `echo` `say`',
      '',
    ]);
    expect((await explain('o__echo')).stdout).toContain('o__echo: tool `echo` of server two\n');
    const rival = await explain('o__slow');
    expect(rival.stdout).toMatch(
      /^o__slow: tool `slow` of server one\n.*\n {2}server two .*`slow`.* is left out/,
    );
    expect(startedPids(log).length).toBeGreaterThan(5);
    expect(startedPids(log).filter(isAlive)).toEqual([]);
  });

  test('says that a name was cut, by its cut form and by its whole one', async () => {
    const prefix = 'a-prefix-of-some-length-for-a-server';
    folder.write({ ...anywhere, names: { max: 40 }, servers: { one: { ...rawServer(log), prefix } } });
    const whole = `${prefix}__progress`;
    const missed = await explain(whole);
    expect(missed.code).toBe(1);
    const [, cut = ''] = /clients call it (\S+)/.exec(missed.stdout) ?? [];
    expect(cut).toHaveLength(40);
    const found = await explain(cut);
    expect(found.code).toBe(0);
    expect(found.stdout).toContain(`\`${whole}\` has ${whole.length} characters and \`names.max\` is 40`);
  });

  test('says why a URI belongs to a server', async () => {
    folder.write({
      ...anywhere,
      servers: { one: rawServer(log), two: rawServer(log) },
    });
    const { stdout: tools } = await explain('one__echo', '--json');
    expect(JSON.parse(tools)).toMatchObject({
      ok: true,
      owners: [{ kind: 'tool', server: 'one', localName: 'echo' }],
    });
    const nobody = await explain('nobody://x');
    expect(nobody).toMatchObject({ code: 1 });
    expect(nobody.stdout).toContain('nobody://x: no tool, prompt or resource of that name\n');
  });

  test('an unknown name exits 1, with what it may have been', async () => {
    folder.write({
      ...anywhere,
      servers: {
        one: { ...rawServer(log), tools: { deny: ['soft'] } },
        gone: { command: [path.join(folder.folder, 'no-such-program')] },
        off: { url: 'http://127.0.0.1:1/', enabled: false },
      },
    });
    const own = await explain('echo');
    expect(own.code).toBe(1);
    expect(own.stdout).toContain('server one has a tool of that name; clients call it one__echo');
    expect(own.stderr).toMatch(/^server gone is down: .*no-such-program/);
    expect((await explain('one__ecko')).stdout).toContain('did you mean one__echo');
    expect((await explain('one__soft')).stdout).toContain('`servers.one.tools` leaves it out');
    expect((await explain('gone__x')).stdout).toContain('server gone, whose prefix it has, is down');
    expect((await explain('off__x')).stdout).toMatch(
      /server off, whose prefix it has, is not used: .*enabled/,
    );
  });

  test('without a name or a config exits 2', async () => {
    expect(await explain()).toMatchObject({ code: 2, stdout: '' });
    expect(await explain('x')).toMatchObject({ code: 2, stdout: '' });
  });
});
