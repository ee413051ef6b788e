import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RequestIds, SlotTable } from '../../src/upstream/slots.ts';

describe('ids of requests', () => {
  test('have ten digits, and none is given twice while it is in use', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 300 }), (steps) => {
        const ids = new RequestIds();
        const open: number[] = [];
        for (const isTaken of steps) {
          if (!isTaken) {
            const id = open.shift();
            if (id !== undefined) ids.release(id);
            continue;
          }
          const id = ids.take();
          expect(String(id)).toMatch(/^[1-9]\d{9}$/);
          expect(open).not.toContain(id);
          open.push(id ?? 0);
        }
      }),
    );
  });

  test('still have ten digits after as many requests as the rounds are long', () => {
    const ids = new RequestIds();
    let last = 0;
    for (let i = 0; i < 600_000; i++) {
      last = ids.take() ?? 0;
      ids.release(last);
    }
    expect(String(last)).toMatch(/^[1-9]\d{9}$/);
  });

  test('run out where too many are in use, and come back when one is released', () => {
    const ids = new RequestIds();
    const all = Array.from({ length: 16_384 }, () => ids.take());
    expect(new Set(all).size).toBe(16_384);
    expect(ids.take()).toBeUndefined();
    ids.release(all[5] ?? 0);
    expect(ids.take()).toBeDefined();
  });
});

describe('a table by id', () => {
  test('is what a Map would be', () => {
    const step = fc.record({ id: fc.nat(60), what: fc.constantFrom('set', 'delete', 'get') });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const table = new SlotTable<string>();
        const map = new Map<number, string>();
        for (const { id, what } of steps) {
          if (what === 'set') {
            table.set(id, `v${id}`);
            map.set(id, `v${id}`);
          } else if (what === 'delete') expect(table.delete(id)).toBe(map.delete(id));
          else expect(table.get(id)).toBe(map.get(id));
          expect(table.size).toBe(map.size);
        }
        expect(table.values().sort()).toEqual([...map.values()].sort());
      }),
    );
  });

  test('does not take an id for one that had its slot before', () => {
    const table = new SlotTable<string>();
    table.set(1_000_013_824, 'old');
    table.set(1_000_013_824 + 16_384, 'new');
    expect(table.get(1_000_013_824)).toBeUndefined();
    expect(table.delete(1_000_013_824)).toBe(false);
    expect(table.size).toBe(1);
  });
});
