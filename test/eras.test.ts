import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const here = (file: string): string => readFileSync(new URL(file, import.meta.url), 'utf8');

const rows = here('eras.md')
  .split('\n')
  .filter((line) => line.startsWith('| ') && line.includes('.test.ts'))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, behaviour = '', file = '', title = '']) => ({ behaviour, file, title }));

describe('the table of behaviours', () => {
  test('has rows', () => {
    expect(rows.length).toBeGreaterThan(40);
  });

  test.each(rows)('names a test for: $behaviour', ({ file, title }) => {
    expect(here(file)).toContain(title);
  });
});
