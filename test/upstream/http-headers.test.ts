import { expect, test } from 'vitest';
import { modernDialect } from '../../src/upstream/dialect.ts';
import { HeaderFault, HeaderSet } from '../../src/upstream/http-headers.ts';
import { noTarget } from '../../src/upstream/outgoing.ts';

const dialect = modernDialect({ name: 'gateway', version: '1' });
const headersOf = (method: string, name: string, paramHeaders: readonly string[] = []) =>
  dialect.headers(method, { ...noTarget, name, paramHeaders });

const linesOf = (method: string, name: string): string =>
  `MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: ${method}\r\nMcp-Name: ${name}\r\n`;

test('headers of a call name its own method and name, whatever was called before', () => {
  const set = new HeaderSet('a:1', [], false);
  const own = set.with([]);
  for (let round = 0; round < 3; round++)
    for (const method of ['tools/call', 'prompts/get'])
      for (const name of ['one', 'two', 'constructor'])
        expect(set.with(headersOf(method, name))).toBe(own + linesOf(method, name));
  expect(set.with(headersOf('tools/call', 'näme'))).toContain('Mcp-Name: =?base64?');
});

test('mirrored arguments are of one call', () => {
  const set = new HeaderSet('a:1', [], false);
  const own = set.with([]);
  for (const value of ['1', '2', '1'])
    expect(set.with(headersOf('tools/call', 'one', ['Mcp-Param-A', value]))).toBe(
      `${own}${linesOf('tools/call', 'one')}Mcp-Param-A: ${value}\r\n`,
    );
  expect(set.with(headersOf('tools/call', 'one'))).toBe(own + linesOf('tools/call', 'one'));
});

test('headers are those of thousands of names', () => {
  const set = new HeaderSet('a:1', [], false);
  const own = set.with([]);
  for (let at = 0; at < 2_500; at++)
    expect(set.with(headersOf('tools/call', `n${at % 1_250}`))).toBe(
      own + linesOf('tools/call', `n${at % 1_250}`),
    );
});

test('a configured header gives way to one of the call, each time', () => {
  const set = new HeaderSet('a:1', ['mcp-name', 'configured', 'x-a', 'b'], true);
  for (let round = 0; round < 2; round++) {
    const lines = set.with(headersOf('tools/call', 'one'));
    expect(lines).toContain('Mcp-Name: one\r\n');
    expect(lines).toContain('x-a: b\r\n');
    expect(lines).not.toContain('configured');
  }
});

test('what no header can carry is refused each time', () => {
  const set = new HeaderSet('a:1', [], false);
  const odd = Object.freeze(['Mcp-Method', 'a\r\nb: c']);
  for (let round = 0; round < 2; round++) expect(() => set.with(odd)).toThrow(HeaderFault);
});
