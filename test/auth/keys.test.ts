import { describe, expect, test } from 'vitest';
import { createKeyring } from '../../src/auth/keys.ts';
import { createKey, hashOfKey } from '../../src/config/key-hash.ts';

const ring = createKeyring({
  ann: hashOfKey('mcy_one'),
  bob: hashOfKey('mcy_two').toUpperCase().replace('SHA', 'sha'),
});

describe('a key', () => {
  test('is its caller’s', () => {
    expect(ring.callerOf('mcy_one')).toEqual({ name: 'ann' });
    expect(ring.callerOf('mcy_two')).toEqual({ name: 'bob' });
    expect(ring.callerOf('mcy_one')).toEqual({ name: 'ann' });
  });

  test.each([
    '',
    'mcy_',
    'mcy_on',
    'mcy_one ',
    'MCY_ONE',
    'mcy_onemcy_two',
    hashOfKey('mcy_one'),
    'x'.repeat(10_000),
  ])('is nobody’s where it is %j', (key) => {
    expect(ring.callerOf(key)).toBeUndefined();
  });

  test('is nobody’s on an empty ring, nor on one with what is no hash', () => {
    expect(createKeyring({}).callerOf('')).toBeUndefined();
    expect(createKeyring({ ann: 'mcy_one', bob: '' }).callerOf('mcy_one')).toBeUndefined();
  });

  test('that was asked for does not show in the next one', () => {
    expect(ring.callerOf('mcy_one')).toBeDefined();
    expect(ring.callerOf('')).toBeUndefined();
  });

  test('is found among a thousand', () => {
    const keys = Array.from({ length: 1_000 }, (_, at) =>
      createKey((bytes) => Buffer.alloc(bytes, `${at}.`)),
    );
    const many = createKeyring(Object.fromEntries(keys.map((key, at) => [`c${at}`, hashOfKey(key)])));
    for (const at of [0, 1, 500, 999]) expect(many.callerOf(keys[at] ?? '')).toEqual({ name: `c${at}` });
  });
});
