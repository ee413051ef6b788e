import { describe, expect, test } from 'vitest';
import { createLog, type Log, type LogOptions } from '../../src/observe/log.ts';
import { Secrets } from '../../src/observe/secrets.ts';

interface Opened {
  readonly log: Log;
  readonly lines: string[];
  /** The last line, parsed. */
  last(): Record<string, unknown>;
}

function open(options: Partial<LogOptions> & { readonly hidden?: readonly string[] } = {}): Opened {
  const lines: string[] = [];
  const { hidden = [], ...given } = options;
  const log = createLog({
    level: 'info',
    secrets: new Secrets(hidden),
    pretty: false,
    destination: { write: (line) => void lines.push(line) },
    ...given,
  });
  return { log, lines, last: () => JSON.parse(lines.at(-1) ?? '{}') };
}

describe('a line of the log', () => {
  test('is one line of JSON with time, level, fields and message', () => {
    const { log, lines, last } = open();
    log.warn({ upstream: 'a', port: 3 }, 'two\nlines');
    expect(lines[0]).toMatch(/^\{[^\n]*\}\n$/);
    expect(last()).toEqual({
      level: 'warn',
      time: last()['time'],
      upstream: 'a',
      port: 3,
      msg: 'two\nlines',
    });
    expect(Date.parse(String(last()['time']))).toBeGreaterThan(Date.now() - 10_000);
  });

  test('below the level is not written', () => {
    const { log, lines } = open({ level: 'warn' });
    log.info({}, 'a');
    log.debug({}, 'b');
    log.error({}, 'c');
    expect(lines).toHaveLength(1);
  });

  test('carries the fields of the logs that it was made from', () => {
    const { log, last } = open();
    log.child({ upstream: 'a' }).child({ era: 'legacy' }).info({ x: 1 }, 'm');
    expect(last()).toMatchObject({ upstream: 'a', era: 'legacy', x: 1 });
  });

  test('says an error with its causes, and no stack for what is expected', () => {
    const { log, last } = open();
    const cause = Object.assign(new TypeError('inner'), { code: 'ECONNRESET' });
    const error = new Error('outer', { cause });
    error.name = 'RpcError';
    log.error({ err: error, other: new RangeError('odd') }, 'm');
    expect(last()).toMatchObject({
      err: {
        type: 'RpcError',
        message: 'outer',
        cause: {
          type: 'TypeError',
          message: 'inner',
          code: 'ECONNRESET',
          stack: expect.stringContaining('log.test'),
        },
      },
      other: { type: 'RangeError', message: 'odd' },
    });
    expect(last()['err']).not.toHaveProperty('stack');
  });

  test('takes an error in the place of fields, and errors that are made of errors', () => {
    const { log, last } = open();
    log.error(new AggregateError([new Error('one'), new Error('two')], 'both'), 'm');
    expect(last()['err']).toMatchObject({
      message: 'both',
      errors: [{ message: 'one' }, { message: 'two' }],
    });
  });

  test('stays small and whole whatever the fields hold', () => {
    const { log, lines, last } = open();
    const loop: Record<string, unknown> = { big: 2n ** 70n, run: () => 1, map: new Map([['k', 1]]) };
    loop['self'] = loop;
    const many = Array.from({ length: 10_000 }, (_, index) => index);
    log.info({ loop, many, text: 'x'.repeat(1e6), bytes: Buffer.from('héllo') }, 'y'.repeat(1e6));
    expect(lines[0]?.length).toBeLessThan(12_000);
    expect(last()).toMatchObject({
      loop: { big: String(2n ** 70n), map: { k: 1 } },
      bytes: 'héllo',
      text: `${'x'.repeat(4_096)}…`,
      msg: `${'y'.repeat(4_096)}…`,
    });
    expect(last()['many']).toHaveLength(50);
  });
});

describe('a secret in the log', () => {
  test('is hidden in messages, fields, bindings and errors', () => {
    const { log, lines } = open({ hidden: ['s3cr3t-value'] });
    log
      .child({ bound: 'x s3cr3t-value' })
      .info({ 's3cr3t-value': 1, deep: [{ a: 's3cr3t-value' }] }, 's3cr3t-value!');
    log.error({ err: new Error('no: s3cr3t-value', { cause: new Error('s3cr3t-value') }) }, 'm');
    log.info({ bytes: Buffer.from('s3cr3t-value') }, 'm');
    expect(lines.join('')).not.toContain('s3cr3t');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      bound: 'x [masked]',
      deep: [{ a: '[masked]' }],
      msg: '[masked]!',
    });
  });

  test.each([
    ['quotes and backslashes', 'pa"ss\\wo"rd'],
    ['a line end', 'first-half\nsecond-half'],
    ['what URLs escape', 'päss wörd/?&'],
  ])('that holds %s is hidden as it is, in JSON, in JSON in JSON and in URLs', (_, secret) => {
    const { log, lines } = open({ hidden: [secret] });
    const body = JSON.stringify({ key: secret });
    log.info({ secret_: secret, body, wrapped: JSON.stringify({ body }) }, encodeURIComponent(secret));
    const line = lines[0] ?? '';
    for (const part of ['wo\\"rd', 'ss\\\\', 'half', 'rd/', '%20w']) expect(line).not.toContain(part);
    expect(line.split('[masked]').length).toBeGreaterThanOrEqual(5);
    expect(() => JSON.parse(line)).not.toThrow();
  });

  test('is hidden whole where the text is cut in the middle of it', () => {
    const { log, lines } = open({ hidden: ['abcdefghijklmnop'] });
    const text = `${'x'.repeat(4_090)}abcdefghijklmnop`;
    log.info({ text, bytes: Buffer.from(text) }, text);
    expect(lines[0]).not.toContain('abc');
  });

  test('is hidden from the moment that it is added', () => {
    const secrets = new Secrets(['first-secret']);
    const { log, lines } = open({ secrets });
    secrets.add(['second-secret']);
    log.info({}, 'first-secret second-secret');
    expect(lines[0]).toContain('"msg":"[masked] [masked]"');
  });

  test('of under six characters is left alone, since it would hide words', () => {
    const { log, last } = open({ hidden: ['on', 'admin', ''] });
    log.info({}, 'admin is on');
    expect(last()['msg']).toBe('admin is on');
  });

  test('that no config names is hidden under its name, in pairs of a header list, and after Bearer', () => {
    const { log, last } = open();
    log.info(
      {
        headers: { Authorization: 'Custom abc', accept: 'x', 'X-Api-Key': 'k1', 'set-cookie': ['c=1'] },
        raw: ['content-type', 'text/plain', 'authorization', 'Custom abc', 'x-last', 'y'],
        clientSecret: 'k2',
        access_token: 'k3',
        progressToken: 7,
      },
      'sent bearer abc.def-ghi to it',
    );
    expect(last()).toMatchObject({
      headers: { Authorization: '[masked]', accept: 'x', 'X-Api-Key': '[masked]', 'set-cookie': '[masked]' },
      raw: ['content-type', 'text/plain', 'authorization', '[masked]', 'x-last', 'y'],
      clientSecret: '[masked]',
      access_token: '[masked]',
      progressToken: 7,
      msg: 'sent bearer [masked] to it',
    });
  });
});

describe('a readable line', () => {
  test('has the time of day, the level, the upstream, the message and the other fields', () => {
    const { log, lines } = open({ pretty: true });
    log.info({ upstream: 'everything' }, 'up (legacy, stdio), 13 tools');
    log.warn({ upstream: 'a', kind: 'tools', why: 'two words' }, 'a: left out');
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d INFO {2}everything: up \(legacy, stdio\), 13 tools\n$/);
    expect(lines[1]).toMatch(/^\d\d:\d\d:\d\d WARN {2}a: left out kind=tools why="two words"\n$/);
  });

  test('is followed by the causes of its error, indented', () => {
    const { log, lines } = open({ pretty: true });
    const error = new Error('outer', { cause: new Error('inner', { cause: 'why' }) });
    error.name = 'ConfigError';
    log.error({ err: error }, 'failed');
    const [head, ...more] = (lines[0] ?? '').trimEnd().split('\n');
    expect(head).toMatch(/ERROR failed$/);
    expect(more[0]).toBe('  ConfigError: outer');
    expect(more[1]).toBe('  because Error: inner');
    expect(more.at(-1)).toBe('  because why');
    expect(more.every((line) => line.startsWith('  '))).toBe(true);
  });

  test('holds no control characters and no line that looks like one of the log', () => {
    const { log, lines } = open({ pretty: true });
    log.info({ field: 'a\u001b[2J' }, 'x\r\n12:00:01 INFO  fake\u001b[31m\u0007');
    expect(lines[0]?.trimEnd()).not.toMatch(/[^\P{Cc}\n]/u);
    expect(lines[0]).toMatch(/\n {2}12:00:01 INFO/);
  });

  test('hides secrets too', () => {
    const { log, lines } = open({ pretty: true, hidden: ['s3cr"t-value'] });
    log.info({ a: 's3cr"t-value' }, 's3cr"t-value');
    expect(lines[0]).toMatch(/INFO {2}\[masked\] a=\[masked\]\n$/);
  });
});
