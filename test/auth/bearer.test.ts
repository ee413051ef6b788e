import { describe, expect, test } from 'vitest';
import { authorizationOf, bearerOf } from '../../src/auth/bearer.ts';

const token = 'mcy_AZaz09-_.~+/=';

describe('the token of a request', () => {
  test.each([[`Bearer ${token}`], [`bearer ${token}`], [`BEARER   ${token}  `]])(
    'is read from %j',
    (value) => {
      expect(bearerOf(authorizationOf(['Host', 'x', 'Authorization', value, 'Accept', 'y']))).toEqual({
        kind: 'token',
        token,
      });
    },
  );

  test('is read whatever the case of the name', () => {
    for (const name of ['authorization', 'AUTHORIZATION', 'aUTHORIZATION'])
      expect(bearerOf(authorizationOf([name, `Bearer ${token}`]))).toMatchObject({ kind: 'token' });
  });

  test.each([
    ['missing', []],
    ['missing', ['Proxy-Authorization', 'Bearer abc', 'X-Authorization', 'Bearer abc']],
    ['missing', ['X', 'Authorization', 'Y', 'Bearer abc']],
    ['several', ['Authorization', 'Bearer abc', 'authorization', 'Bearer abc']],
    ['several', ['Authorization', '', 'X', 'y', 'Authorization', 'Bearer abc']],
    ['long', ['Authorization', `Bearer ${'a'.repeat(1_024)}`]],
    ['malformed', ['Authorization', '']],
    ['malformed', ['Authorization', 'Bearer']],
    ['malformed', ['Authorization', 'Bearer ']],
    ['malformed', ['Authorization', 'Bearerabc']],
    ['malformed', ['Authorization', 'Basic YTpi']],
    ['malformed', ['Authorization', 'Bearer a b']],
    ['malformed', ['Authorization', 'Bearer a,Bearer b']],
    ['malformed', ['Authorization', 'Bearer =']],
    ['malformed', ['Authorization', 'Bearer a=b']],
    ['malformed', ['Authorization', 'Bearer "a"']],
    ['malformed', ['Authorization', 'Bearer\ta']],
    ['malformed', ['Authorization', 'Bearer é']],
  ] as const)('is %s in %j', (failure, rawHeaders) => {
    expect(bearerOf(authorizationOf(rawHeaders))).toEqual({ kind: 'none', failure });
  });

  test('of the greatest length is read', () => {
    const value = `Bearer ${'a'.repeat(1_017)}`;
    expect(value).toHaveLength(1_024);
    expect(bearerOf(authorizationOf(['Authorization', value]))).toMatchObject({ kind: 'token' });
  });
});
