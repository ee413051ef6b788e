import { availableParallelism } from 'node:os';
import { expect, test } from 'vitest';
import { runHere } from '../cli/here.ts';
import { createFolder } from '../cli/program.ts';

async function check(config: object, ...args: readonly string[]) {
  const { folder, file, remove } = createFolder({ servers: {}, ...config });
  const checked = await runHere(['check', '--offline', '-c', file, ...args], folder);
  remove();
  return checked;
}

test('check says how many workers there will be, where there are several', async () => {
  expect((await check({})).stdout).toMatch(/config\.yaml: ok, 0 servers\n$/);
  expect((await check({ workers: 3 })).stdout).toMatch(/config\.yaml: ok, 0 servers, 3 workers\n$/);
  expect(JSON.parse((await check({ workers: 3 }, '--json')).stdout)).toMatchObject({ ok: true, workers: 3 });
  expect(JSON.parse((await check({}, '--json')).stdout)).not.toHaveProperty('workers');
});

test('check warns of more workers than cores', async () => {
  const cores = availableParallelism();
  expect((await check({ workers: 'auto' })).stderr).not.toContain('workers:');
  if (cores < 64)
    expect((await check({ workers: cores + 1 })).stderr).toMatch(
      new RegExp(
        `^warning: workers: ${cores + 1} are more than the (?:one core|${cores} cores) of this machine`,
        'm',
      ),
    );
});
