import { describe, expect, test } from 'vitest';
import { asRpcError, errorMessage, RpcError } from '../../src/protocol/errors.ts';

describe('an error message', () => {
  test.each([
    ['a number', '7', '{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}'],
    [
      'a text as written',
      '"\\u0041"',
      '{"jsonrpc":"2.0","id":"\\u0041","error":{"code":-32602,"message":"no"}}',
    ],
    ['none, where none could be read', undefined, '{"jsonrpc":"2.0","error":{"code":-32602,"message":"no"}}'],
  ])('has the id of the request: %s', (_, id, expected) => {
    const bytes = errorMessage(id === undefined ? undefined : Buffer.from(id), new RpcError(-32602, 'no'));
    expect(bytes.toString()).toBe(expected);
  });

  test.each([{ a: 1 }, null, 0, false, ''])('has the data %j', (data) => {
    const bytes = errorMessage(Buffer.from('1'), new RpcError(1, 'no', { data }));
    expect(JSON.parse(bytes.toString()).error).toEqual({ code: 1, message: 'no', data });
  });

  test('never shows a cause or a stack', () => {
    const error = new RpcError(1, 'no', { cause: new Error('the password is hunter2') });
    expect(errorMessage(undefined, error).toString()).toBe(
      '{"jsonrpc":"2.0","error":{"code":1,"message":"no"}}',
    );
    expect(error.cause).toBeInstanceOf(Error);
  });

  test('is 200 without a status of its own', () => {
    expect([new RpcError(1, 'no').status, new RpcError(1, 'no', { status: 404 }).status]).toEqual([200, 404]);
  });
});

describe('what a caller is told', () => {
  test('is an RpcError as it is', () => {
    const error = new RpcError(1, 'no');
    expect(asRpcError(error)).toBe(error);
  });

  test.each([new TypeError('x is not a function'), 'text', undefined])(
    'is an internal error where anything else was thrown: %s',
    (thrown) => {
      const error = asRpcError(thrown);
      expect([error.code, error.status]).toEqual([-32603, 200]);
      expect(error.message).not.toContain('function');
      expect(error.cause).toBe(thrown);
    },
  );
});
