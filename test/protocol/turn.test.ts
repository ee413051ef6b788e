import { expect, test } from 'vitest';
import { TurnEnd } from '../../src/protocol/turn.ts';

function turns() {
  const scheduled: (() => void)[] = [];
  const said: string[] = [];
  const turn = new TurnEnd((run) => scheduled.push(run));
  const add = (name: string, then?: () => void): void =>
    turn.add({
      flush: () => {
        said.push(name);
        then?.();
      },
    });
  return { add, said, scheduled, end: () => scheduled.shift()?.() };
}

test('what is added in one turn is flushed at its end, in order and by one call', () => {
  const { add, said, scheduled, end } = turns();
  add('a');
  add('b');
  expect(said).toEqual([]);
  expect(scheduled).toHaveLength(1);
  end();
  expect(said).toEqual(['a', 'b']);
  expect(scheduled).toHaveLength(0);
});

test('what a flush adds waits for the next end', () => {
  const { add, said, end } = turns();
  add('a', () => add('c'));
  add('b');
  end();
  expect(said).toEqual(['a', 'b']);
  end();
  expect(said).toEqual(['a', 'b', 'c']);
});
