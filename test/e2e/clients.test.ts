import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const bench = fileURLToPath(new URL('../../bench/clients.mjs', import.meta.url));
const lifeMs = 55_000;

interface Counted {
  readonly calls: number;
  readonly lists: number;
  readonly notifications: number;
  readonly errors: number;
  readonly crossed: number;
  readonly shown: readonly string[];
}

/** Runs the bench to its end; what it found is on stdout whatever its exit code. */
function runBench(...args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [bench, ...args], { timeout: lifeMs }, (_error, stdout, stderr) =>
      resolve({ stdout, stderr }),
    );
  });
}

test('fifty clients that list and call at once get their own answers, and all of them', async () => {
  const args = ['--json', '--seconds', '3', '--clients', '50', '--growth-mib', 'Infinity'];
  const { stdout, stderr } = await runBench(...args);
  expect(stderr).toBe('');
  const { shown, errors, crossed, ...counted } = JSON.parse(stdout) as Counted;
  expect({ shown, errors, crossed }).toEqual({ shown: [], errors: 0, crossed: 0 });
  expect(counted.calls).toBeGreaterThan(200);
  expect(counted.lists).toBeGreaterThan(20);
  expect(counted.notifications).toBeGreaterThan(20);
});
