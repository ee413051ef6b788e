import { expect, test } from 'vitest';
import { configOf, parseToPrimary, parseToWorker, plainConfig } from '../../src/workers/control.ts';
import { parse } from '../config/parse-fixture.ts';

test('a config is the same after it was sent', () => {
  const config = parse(`
workers: 2
servers:
  web: { url: "https://example.com/mcp?x=1", headers: { X: "1" } }
  child: { command: [node, x.mjs], env: { A: b } }
`);
  const sent = configOf(JSON.parse(JSON.stringify(plainConfig(config))));
  expect(sent).toEqual(config);
  expect(sent.servers[0]?.target).toMatchObject({ url: new URL('https://example.com/mcp?x=1') });
});

test('what is none of the messages, or lacks a member, is not taken for one', () => {
  expect(parseToWorker({ kind: 'stop', drainMs: 5, hasGrace: true })).toEqual({
    kind: 'stop',
    drainMs: 5,
    hasGrace: true,
  });
  for (const message of [
    undefined,
    null,
    'stop',
    {},
    { kind: 'stop' },
    { kind: 'stop', drainMs: '5', hasGrace: true },
    { kind: 'constructor' },
    { kind: 'start', name: 'w0', names: null },
  ])
    expect(parseToWorker(message)).toBeUndefined();
  expect(parseToPrimary({ kind: 'ready', endpoint: 'http://x/mcp' })).toBeDefined();
  for (const message of [
    { kind: 'ready' },
    { kind: 'stop', drainMs: 5, hasGrace: true },
    { kind: 'answer', id: '1' },
  ])
    expect(parseToPrimary(message)).toBeUndefined();
});
