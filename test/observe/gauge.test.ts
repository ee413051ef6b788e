import { expect, test } from 'vitest';
import { Gauge, gaugeLines } from '../../src/observe/gauge.ts';
import { parseExposition } from './exposition-text.ts';

const head = '# HELP things How many.\n# TYPE things gauge\n';

test('A gauge shows the last value of each combination of labels, in the order of its names', () => {
  const gauge = new Gauge('things', 'How many.', ['kind', 'side']);
  gauge.set({ side: 'left', kind: 'a' }, 1);
  gauge.set({ kind: 'b', side: 'right' }, 2);
  gauge.set({ kind: 'a', side: 'left' }, 3.5);
  expect(gaugeLines(gauge)).toBe(
    `${head}things{kind="a",side="left"} 3.5\nthings{kind="b",side="right"} 2\n`,
  );
});

test('One without labels, and one without values, are well-formed', () => {
  const gauge = new Gauge('things', 'How many.');
  expect(gaugeLines(gauge)).toBe(head);
  gauge.set({}, 0);
  expect(gaugeLines(gauge)).toBe(`${head}things 0\n`);
});

test('It counts up and down from nothing, and forgets what is removed', () => {
  const gauge = new Gauge('things', 'How many.', ['kind']);
  gauge.inc({ kind: 'a' }, 1);
  gauge.inc({ kind: 'a' }, 1);
  gauge.inc({ kind: 'b' }, -1);
  gauge.remove({ kind: 'c' });
  expect(gaugeLines(gauge)).toBe(`${head}things{kind="a"} 2\nthings{kind="b"} -1\n`);
  gauge.remove({ kind: 'a' });
  expect(gaugeLines(gauge)).toBe(`${head}things{kind="b"} -1\n`);
});

test('Labels of any characters can be read again', () => {
  const gauge = new Gauge('things', 'How many.', ['kind']);
  const kind = 'a "quoted"\\ one\non two lines';
  gauge.set({ kind }, 1);
  expect(parseExposition(gaugeLines(gauge)).value('things', { kind })).toBe(1);
});
