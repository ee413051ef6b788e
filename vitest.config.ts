import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Those first that take longest, so that none of them is left alone at the end: their folders, in order. */
const longest = ['workers/', 'e2e/pair', 'cli/', 'deploy/', 'e2e/', 'upstream/'];

const rankOf = ({ moduleId }: TestSpecification): number => {
  const at = longest.findIndex((folder) => moduleId.includes(`/test/${folder}`));
  return at === -1 ? longest.length : at;
};

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // How long things take is the machine's affair; these only end what hangs.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // Nothing of ours is global, so a process that has loaded the modules can run one file after the other.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    // Most tests wait for something, so a core has time for more than one.
    maxWorkers: Math.max(3, availableParallelism()),
    expect: { poll: { timeout: 30_000 } },
  },
});
