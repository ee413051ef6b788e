import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type Answer, type CallOptions, call, openCall, resultOf } from '../support/modern-client.ts';
import { endChild, startListening } from '../support/upstream.ts';

/** What stands between the client's names and the upstream's. */
const prefix = 'memos__';
const read = (file: string): string =>
  readFileSync(new URL(`fixtures/memos/${file}.txt`, import.meta.url), 'utf8').trimEnd();
const prefixed = (text: string): string => text.replaceAll('memo_list_memos', `${prefix}memo_list_memos`);

interface Exchange {
  readonly method: string;
  readonly options: CallOptions & { readonly body: string };
}

/** A request as it stands on the wire, with the public name of the tool in place of the upstream's own. */
function exchange(name: string): Exchange {
  const [head = '', body = ''] = prefixed(read(`${name}.request`)).split('\n\n');
  const headers = Object.fromEntries(
    head
      .split('\n')
      .slice(1)
      .map((line) => line.split(': ') as [string, string]),
  );
  return { method: headers['Mcp-Method'] ?? '', options: { headers, body } };
}

let gateway: Gateway;
let memos: Awaited<ReturnType<typeof startListening>>;
const folder = mkdtempSync(join(tmpdir(), 'memos-'));
const log = join(folder, 'seen.jsonl');

interface Seen {
  readonly raw: string;
  readonly headers: Readonly<Record<string, string>>;
}
const lastSeen = (): Seen => {
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
  return JSON.parse(lines.at(-1) ?? '') as Seen;
};

const play = (name: string, change: (body: string) => string = (body) => body): Promise<Answer> => {
  const { method, options } = exchange(name);
  return call(gateway.url, method, {}, { ...options, body: change(options.body) });
};

beforeAll(async () => {
  memos = await startListening([fileURLToPath(new URL('fixtures/memos.mjs', import.meta.url)), log]);
  gateway = await startGateway({
    hosts: ['memos.example.com'],
    servers: { memos: { url: `http://127.0.0.1:${memos.port}/mcp` } },
  });
});

afterAll(async () => {
  await gateway?.stop();
  if (memos !== undefined) await endChild(memos.child);
  rmSync(folder, { recursive: true, force: true });
});

describe('the exchanges of a Memos adapter, played through the gateway', () => {
  test('the gateway is discovered as a server of the same revision with tools', async () => {
    const result = resultOf(await play('discover'));
    expect(result['resultType']).toBe('complete');
    expect(result['supportedVersions']).toContain('2026-07-28');
    expect(result['capabilities']).toHaveProperty('tools');
  });

  test('tools are listed as the upstream describes them, but for their names', async () => {
    const answer = await play('tools-list');
    const shown = JSON.parse(read('tools-list.response')) as { result: { tools: { name: string }[] } };
    expect(answer.status).toBe(200);
    expect(answer.response?.id).toBe(2);
    const result = resultOf(answer);
    expect(result['resultType']).toBe('complete');
    expect(result['tools']).toEqual(
      shown.result.tools.map((tool) => ({ ...tool, name: `${prefix}${tool.name}` })),
    );
    expect(result['cacheScope']).toBe('private');
    expect(result['ttlMs']).toBeGreaterThan(0);
    expect(result['ttlMs']).toBeLessThanOrEqual(300_000);
    expect(result).not.toHaveProperty('nextCursor');
  });

  test.each(['empty-call', 'call'])('the answer to %s comes back byte for byte', async (name) => {
    const answer = await play(name);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    expect(answer.raw.toString('utf8')).toBe(read(`${name}.response`));
  });

  test('the upstream receives the call under its own name, with the headers that mirror it', async () => {
    await play('call');
    const seen = lastSeen();
    const sent = JSON.parse(read('call.request').split('\n\n')[1] ?? '') as Record<string, unknown>;
    expect({ ...(JSON.parse(seen.raw) as object), id: sent['id'] }).toEqual(sent);
    expect(seen.headers).toMatchObject({
      'content-type': 'application/json',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'memo_list_memos',
    });
    expect(seen.headers['accept']).toContain('application/json');
    expect(seen.headers['accept']).toContain('text/event-stream');
  });

  test("the client's token stays at the gateway", async () => {
    await play('call');
    expect(JSON.stringify(lastSeen())).not.toContain('example-token');
  });

  test('a tool that does not exist is an error of the protocol', async () => {
    const name = `${prefix}memo_unknown_tool`;
    const { options } = exchange('empty-call');
    const answer = await call(
      gateway.url,
      'tools/call',
      {},
      {
        body: options.body.replace(`${prefix}memo_list_memos`, name).replace('"id": 0', '"id": 4'),
        headers: { ...options.headers, 'Mcp-Name': name },
      },
    );
    const shown = JSON.parse(read('unknown-tool.response')) as object;
    expect(answer.status).toBe(200);
    expect(answer.response).toEqual(
      JSON.parse(JSON.stringify(shown).replace('memo_unknown_tool', name)) as object,
    );
  });

  test('a tool that fails is a result, byte for byte', async () => {
    const answer = await play('call', (body) =>
      body.replace('"id": 3', '"id": 5').replace('visibility != \\"PRIVATE\\"', 'visibility !='),
    );
    expect(answer.status).toBe(200);
    expect(answer.raw.toString('utf8')).toBe(read('tool-error.response'));
  });

  test('progress arrives while the call runs, each message as one event of one stream', async () => {
    const { method, options } = exchange('progress-call');
    const open = await openCall(gateway.url, method, {}, options);
    expect(open.status).toBe(200);
    expect(open.headers['content-type']).toMatch(/^text\/event-stream/);
    await open.next();
    // The upstream waits for this between its two events: a gateway that holds the first back would show neither.
    writeFileSync(`${log}.go`, '');
    const answer = await open.done;
    const events = read('progress-call.response').split('\n\n');
    expect(answer.texts).toEqual(events.map((event) => event.split('\ndata: ')[1]));
  });
});
