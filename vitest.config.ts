import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    pool: 'forks',
    // A poll ends as soon as it holds; how long that takes is the machine's affair.
    expect: { poll: { timeout: 10_000 } },
  },
});
