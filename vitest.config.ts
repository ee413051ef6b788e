import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    pool: 'forks',
    // Most tests wait for something, so a core has time for more than one.
    maxWorkers: Math.max(3, availableParallelism()),
    // A poll ends as soon as it holds; how long that takes is the machine's affair.
    expect: { poll: { timeout: 10_000 } },
  },
});
