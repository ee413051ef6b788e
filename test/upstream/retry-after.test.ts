import { expect, test } from 'vitest';
import { retryAfter } from '../../src/upstream/retry-after.ts';

const now = Date.parse('2026-12-01T00:00:00Z');

test.each([
  [429, '7', 7_000],
  [503, ' 0 ', 0],
  [503, 'Tue, 01 Dec 2026 00:01:30 GMT', 90_000],
  [503, 'Tue, 01 Dec 2020 00:00:00 GMT', 0],
  [429, '99999999999', 86_400_000],
  [429, 'soon', undefined],
  [429, '', undefined],
  [429, undefined, undefined],
  [500, '7', undefined],
])('%i with Retry-After %j asks for %j ms', (status, header, ms) => {
  expect(retryAfter(status, header, now)).toBe(ms);
});
