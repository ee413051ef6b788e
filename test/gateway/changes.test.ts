import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type ChangedKind, Changes } from '../../src/gateway/changes.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function listened() {
  const changes = new Changes();
  const heard: ChangedKind[] = [];
  const end = changes.subscribe('a', (kind) => heard.push(kind));
  return { changes, heard, end };
}

describe('changed lists', () => {
  test('are told at once the first time', () => {
    const { changes, heard } = listened();
    changes.announce(['tools']);
    expect(heard).toEqual(['tools']);
  });

  test('that change often are told once more when a while has passed, however often it was', () => {
    const { changes, heard } = listened();
    for (let i = 0; i < 100; i++) changes.announce(['tools']);
    vi.advanceTimersByTime(249);
    expect(heard).toEqual(['tools']);
    vi.advanceTimersByTime(1);
    expect(heard).toEqual(['tools', 'tools']);
    vi.advanceTimersByTime(10_000);
    expect(heard).toHaveLength(2);
  });

  test('that change without end are told four times a second', () => {
    const { changes, heard } = listened();
    for (let i = 0; i < 1_000; i++) {
      changes.announce(['tools']);
      vi.advanceTimersByTime(1);
    }
    expect(heard.length).toBeLessThanOrEqual(5);
    expect(heard.length).toBeGreaterThanOrEqual(4);
  });

  test('of one kind do not hold back another', () => {
    const { changes, heard } = listened();
    changes.announce(['tools']);
    changes.announce(['prompts']);
    expect(heard).toEqual(['tools', 'prompts']);
  });

  test('of templates are told as resources, and once where both changed', () => {
    const { changes, heard } = listened();
    changes.announce(['templates', 'resources']);
    vi.advanceTimersByTime(1_000);
    expect(heard).toEqual(['resources']);
  });

  test('are told to nobody who listens no more', () => {
    const { changes, heard, end } = listened();
    changes.announce(['tools']);
    changes.announce(['tools']);
    end();
    vi.advanceTimersByTime(1_000);
    expect(heard).toEqual(['tools']);
  });

  test('are told when the others have heard whose they are, where there are others', async () => {
    const said: string[] = [];
    let go: () => void = () => undefined;
    const changes = new Changes((kind, upstreams, context) => {
      said.push(`${kind} of ${upstreams.join()} for ${context}`);
      return new Promise((resolve) => {
        go = resolve;
      });
    });
    const heard: ChangedKind[] = [];
    changes.subscribe('a', (kind) => heard.push(kind));
    changes.announce(['tools'], undefined, 'one');
    changes.announce(['tools'], undefined, 'two');
    changes.announce(['tools'], undefined, 'three');
    await vi.advanceTimersByTimeAsync(100);
    expect(said).toEqual(['tools of one for undefined']);
    expect(heard).toEqual([]);
    go();
    await vi.advanceTimersByTimeAsync(100);
    expect(heard).toEqual(['tools']);
    await vi.advanceTimersByTimeAsync(100);
    expect(said).toEqual(['tools of one for undefined', 'tools of two,three for undefined']);
    changes.announce(['prompts'], 'a');
    expect(heard).toEqual(['tools', 'prompts']);
    changes.stop();
  });

  test('leave no timer behind when all is stopped', () => {
    const { changes } = listened();
    changes.announce(['tools', 'prompts', 'resources']);
    changes.stop();
    expect(vi.getTimerCount()).toBe(0);
  });
});
