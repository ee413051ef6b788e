import { describe, expect, test } from 'vitest';

const at = (file: string): string => new URL(`../../bench/${file}`, import.meta.url).href;
const { markdownOf, pageOf } = await import(at('report.mjs'));
const { owedRow } = await import(at('rows.mjs'));
const { requestOf, requestsFile } = await import(at('requests.mjs'));
const { expectedCall } = await import(at('payload.mjs'));

const flat = (median: number) => ({ median, low: median, high: median, count: 5 });

const table = {
  work: 'tools/call',
  reference: 'nginx',
  rounds: 5,
  targets: {
    mcpyard: {
      rate: flat(30_000),
      p50Us: flat(500),
      p99Us: flat(900),
      cpuUs: flat(33.33),
      cpuShare: flat(1),
      loadShare: flat(0.25),
      against: { rate: flat(0.4), p50Us: flat(2), p99Us: flat(3), cpuUs: flat(Number.NaN) },
      bad: 0,
      foreign: 0.02,
    },
  },
};

describe('the report of the bench', () => {
  test('columns of a table are as wide as their widest cell', () => {
    const shown = markdownOf({ work: 'Memory', head: ['a', 'bcd'], rows: [['wide', '1']] });
    expect(shown).toBe('Memory\n\n| a    | bcd |\n| ---- | --- |\n| wide | 1   |');
  });

  test('a target shows its rate, its ratio with the quartiles, and nothing where nothing was measured', () => {
    const row = markdownOf(table).split('\n').at(-1);
    const cells = row?.split('|').map((cell: string) => cell.trim());
    expect(cells?.slice(1, 8)).toEqual([
      'mcpyard',
      '30000',
      '0.400 (0.400 to 0.400)',
      '500',
      '2.00',
      '900',
      '3.00',
    ]);
  });

  test('a page has the rows that are owed, with what they reach, before the scenarios', () => {
    const owed = [owedRow('modern', { median: 0.3, low: 0.29, high: 0.31 })];
    const page = pageOf({
      date: '2026-12-01T00:00:00.000Z',
      versions: { node: 'v20' },
      settings: { rounds: 5 },
      scenarios: [{ name: 'modern', about: 'About.', tables: [table], owed, failed: 'it broke' }],
    });
    expect(page).toMatch(/\| 0\.24x +\| 0\.40x +\| 0\.30x \(0\.29x to 0\.31x\) +\| floor +\|/);
    expect(page.indexOf('0.30x')).toBeLessThan(page.indexOf('## modern'));
    expect(page).toContain('Failed: it broke');
  });

  test('a row that is not in the table is refused', () => {
    expect(() => owedRow('nothing', flat(1))).toThrow('no row is called nothing');
  });
});

describe('the requests of the bench', () => {
  const target = { port: 80, path: '/mcp', isModern: true, key: 'k' };

  test('have nine digits for the id where they say, and the length of their body', () => {
    const { bytes, idAt } = requestOf(target, 'tools/call', { name: 'tool_0', arguments: {} });
    const [head, body] = bytes.toString().split('\r\n\r\n');
    expect(bytes.subarray(idAt, idAt + 9).toString()).toBe('100000000');
    expect(head).toContain(`content-length: ${Buffer.byteLength(body)}`);
    expect(head).toContain('mcp-name: tool_0');
    expect(JSON.parse(body).params._meta['io.modelcontextprotocol/protocolVersion']).toBe('2026-07-28');
  });

  test('stand in the file behind their length and the place of the id', () => {
    expect(requestsFile([{ bytes: Buffer.from('abc'), idAt: 1 }]).toString()).toBe('3 1\nabc');
  });

  test('ask for texts of exactly the length that is named', () => {
    for (const bytes of [1, 200, 65_536])
      expect(expectedCall(bytes)).toHaveLength(bytes + '"text":""'.length);
    expect(() => JSON.parse(`{${expectedCall(65_536)}}`)).not.toThrow();
  });
});
