import { describe, expect, test } from 'vitest';
import { type Figures, noFigures } from '../../src/workers/figures.ts';
import { type Account, Ledger } from '../../src/workers/ledger.ts';

const family = 0;
const label = 'tool="a"';

function counted(count: number): Figures {
  const figures = noFigures();
  figures.rows.set(family, new Map([[label, Float64Array.of(count)]]));
  return figures;
}

const countOf = ({ rows }: Figures): number => rows.get(family)?.get(label)?.[0] ?? 0;

/** What a scrape that is made of it says. */
const sumOf = ({ workers, past }: Account): number =>
  workers.reduce((sum, { figures }) => sum + countOf(figures), countOf(past));

const both = [
  { name: 'w0', isFresh: true },
  { name: 'w1', isFresh: true },
];

describe('what all workers have counted', () => {
  test('has a worker once that answered and died before the others had', () => {
    const ledger = new Ledger();
    ledger.heard('w0', counted(20));
    ledger.fell('w0');
    ledger.heard('w1', counted(3));
    const account = ledger.account(both);
    expect(sumOf(account)).toBe(23);
    expect(account.workers.map(({ isFresh }) => isFresh)).toEqual([false, true]);
  });

  test('stays as it was given when workers die while it is read', () => {
    const ledger = new Ledger();
    ledger.heard('w0', counted(20));
    ledger.heard('w1', counted(3));
    ledger.fell('w1');
    const account = ledger.account(both);
    ledger.fell('w0');
    expect(sumOf(account)).toBe(23);
    expect(sumOf(ledger.account(both))).toBe(23);
  });

  test('keeps what each said last, and has what all had counted that died in one sum', () => {
    const ledger = new Ledger();
    for (const count of [5, 7]) {
      ledger.heard('w0', counted(count));
      ledger.fell('w0');
    }
    ledger.heard('w0', counted(1));
    ledger.heard('w0', counted(2));
    const [w0] = ledger.account([{ name: 'w0', isFresh: false }]).workers;
    expect(w0).toMatchObject({ name: 'w0', isFresh: false });
    expect(sumOf(ledger.account(both))).toBe(14);
  });
});
