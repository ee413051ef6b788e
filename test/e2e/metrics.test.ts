import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Exposition } from '../observe/exposition-text.ts';
import { end, figuresOf, scrape } from '../support/figures.ts';
import type { Gateway } from '../support/gateway.ts';
import { type LegacySession, openSession } from '../support/legacy-session.ts';
import { call, callTool, openCall, resultOf } from '../support/modern-client.ts';
import {
  childScript,
  discovered,
  legacyScript,
  modernScript,
  type Script,
  tool,
} from '../support/scripted.ts';
import { startUpstream } from '../support/upstream.ts';

const { ends, gatewayOf, serverOf } = figuresOf();
afterAll(() => end(ends));

const modern = '2026-07-28';
const legacy = '2025-06-18';
const server = 'mcp_server_operation_duration_seconds';
const client = 'mcp_client_operation_duration_seconds';

/** The question of an answer that is an event stream of a legacy client's call. */
const accept = { action: 'accept', content: { answer: 'yes' } };

describe('a modern and a legacy client in front of a modern and a legacy server', () => {
  let gateway: Gateway;
  let session: LegacySession;
  let figures: Exposition;
  let listed: Buffer;
  /** The gateway's own time in one call of a server that takes its time. */
  let ownSeconds = Number.NaN;
  const bytes = { request: 0, response: 0 };

  const overheadIn = ({ value }: Exposition): number =>
    value('mcpyard_overhead_seconds_sum', { mcp_method_name: 'tools/call' }) ?? 0;

  const echo = async (name: string): Promise<void> => {
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name,
        arguments: { word: 'hello' },
        _meta: {
          'io.modelcontextprotocol/protocolVersion': modern,
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    });
    const answer = await call(gateway.url, 'tools/call', { name }, { body });
    bytes.request += body.length;
    bytes.response += answer.raw.length;
  };

  beforeAll(async () => {
    const http = await startUpstream();
    const stdio = await startUpstream({ era: 'legacy', transport: 'stdio' });
    ends.push(
      () => http.stop(),
      () => stdio.stop(),
    );
    gateway = await gatewayOf({ new: http.server, old: stdio.server });
    session = await openSession(gateway.url, { elicitation: {} });
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
    await echo('new__echo');
    await echo('new__echo');
    await session.ask('tools/call', { name: 'old__echo', arguments: {} });
    await session.ask('tools/call', { name: 'new__echo', arguments: {} });
    await callTool(gateway.url, 'old__soft');
    await callTool(gateway.url, 'new__fail', { code: -32123 });
    await callTool(gateway.url, 'nobody__has_this');
    await call(gateway.url, 'evil/method');
    const before = overheadIn(await scrape(gateway));
    await callTool(gateway.url, 'old__slow', { ms: 400 });
    ownSeconds = overheadIn(await scrape(gateway)) - before;
    await callTool(gateway.url, 'old__ask', { kind: 'elicitation' }, { meta });
    const asking = await session.open('tools/call', { name: 'new__ask', arguments: { kind: 'elicitation' } });
    let question = await asking.next();
    while (question.id === undefined) question = await asking.next();
    await session.answer(question.id, accept);
    await asking.done;
    await session.ask('ping');
    await session.ask('logging/setLevel', { level: 'nonsense' });
    await session.end();
    listed = (await call(gateway.url, 'tools/list')).raw;
    figures = await scrape(gateway);
  });

  test('is seen per method, tool, error and revision of the client', () => {
    const count = (labels: Record<string, string>) => figures.value(`${server}_count`, labels);
    const calls = { mcp_method_name: 'tools/call', mcp_protocol_version: modern };
    expect(count({ ...calls, gen_ai_tool_name: 'new__echo' })).toBe(2);
    expect(count({ ...calls, gen_ai_tool_name: 'new__echo', mcp_protocol_version: legacy })).toBe(1);
    expect(count({ ...calls, gen_ai_tool_name: 'old__echo', mcp_protocol_version: legacy })).toBe(1);
    expect(count({ ...calls, error_type: '-32602' })).toBe(1);
    expect(count({ mcp_method_name: '_OTHER', error_type: '-32601', mcp_protocol_version: modern })).toBe(1);
  });

  test('tells what a tool says of itself from what the protocol says', () => {
    const calls = { mcp_method_name: 'tools/call', mcp_protocol_version: modern };
    const failed = { ...calls, gen_ai_tool_name: 'old__soft', error_type: 'tool_error' };
    expect(figures.value(`${server}_count`, failed)).toBe(1);
    const refused = { ...calls, gen_ai_tool_name: 'new__fail', error_type: '-32123' };
    expect(figures.value(`${server}_count`, refused)).toBe(1);
    const atUpstream = {
      gen_ai_tool_name: 'soft',
      upstream: 'old',
      mcp_method_name: 'tools/call',
      error_type: 'tool_error',
      network_transport: 'pipe',
      era: 'legacy',
    };
    expect(figures.value(`${client}_count`, atUpstream)).toBe(1);
  });

  test('has what a legacy client asks under its own names', () => {
    const count = (labels: Record<string, string>) =>
      figures.value(`${server}_count`, { ...labels, mcp_protocol_version: legacy });
    expect(count({ mcp_method_name: 'initialize' })).toBe(1);
    expect(count({ mcp_method_name: 'ping' })).toBe(1);
    expect(count({ mcp_method_name: 'logging/setLevel', error_type: '-32602' })).toBe(1);
    expect(count({ mcp_method_name: 'server/discover' })).toBeUndefined();
  });

  test('is bridged in all four ways', () => {
    const bridge = (client_era: string, upstream_era: string, outcome: string) =>
      figures.value('mcpyard_era_bridge_total', { client_era, upstream_era, outcome });
    expect(bridge('modern', 'modern', 'ok')).toBe(2);
    expect(bridge('modern', 'modern', 'error')).toBe(1);
    expect(bridge('modern', 'legacy', 'ok')).toBe(1);
    expect(bridge('modern', 'legacy', 'tool_error')).toBe(1);
    expect(bridge('modern', 'legacy', 'input_required')).toBe(1);
    expect(bridge('legacy', 'legacy', 'ok')).toBe(1);
    expect(bridge('legacy', 'modern', 'input_required')).toBe(1);
    expect(bridge('legacy', 'modern', 'ok')).toBe(2);
  });

  test('has its rounds of questions counted', () => {
    const rounds = (client_era: string, upstream_era: string) =>
      figures.value('mcpyard_input_required_rounds_total', { client_era, upstream_era });
    expect(rounds('modern', 'legacy')).toBe(1);
    expect(rounds('legacy', 'modern')).toBe(1);
    expect(rounds('modern', 'modern')).toBe(0);
  });

  test("has the gateway's own time apart from that of a slow server", () => {
    const slow = {
      gen_ai_tool_name: 'old__slow',
      mcp_method_name: 'tools/call',
      mcp_protocol_version: modern,
    };
    const overhead = { mcp_method_name: 'tools/call' };
    expect(figures.value(`${server}_sum`, slow)).toBeGreaterThan(0.39);
    expect(figures.value('mcpyard_overhead_seconds_count', overhead)).toBeGreaterThan(8);
    expect(ownSeconds).toBeGreaterThan(0);
    expect(ownSeconds).toBeLessThan(0.39);
  });

  test('has the bytes of requests and of answers counted', () => {
    const labels = {
      gen_ai_tool_name: 'new__echo',
      mcp_method_name: 'tools/call',
      mcp_protocol_version: modern,
    };
    expect(bytes.response).toBeGreaterThan(0);
    expect(figures.value('mcpyard_request_bytes_total', labels)).toBe(bytes.request);
    expect(figures.value('mcpyard_response_bytes_total', labels)).toBe(bytes.response);
  });

  test('has the length of each list and the tools of each server', () => {
    const text = listed.toString('utf8');
    const list = text.slice(text.indexOf('"tools":['), text.lastIndexOf(']') + 1);
    const count = (JSON.parse(text) as { result: { tools: unknown[] } }).result.tools.length;
    expect(figures.value('mcpyard_list_bytes', { kind: 'tools' })).toBe(Buffer.byteLength(list));
    const tools = ['new', 'old'].map((upstream) => figures.value('mcpyard_upstream_tools', { upstream }));
    expect((tools[0] ?? 0) + (tools[1] ?? 0)).toBe(count);
    expect(figures.value('mcpyard_list_bytes', { kind: 'prompts' })).toBeGreaterThan(20);
  });

  test('has the duration of a session that was ended', () => {
    const name = 'mcp_server_session_duration_seconds';
    expect(figures.value(`${name}_count`, { mcp_protocol_version: legacy })).toBe(1);
    expect(figures.value(`${name}_sum`, { mcp_protocol_version: legacy })).toBeGreaterThan(0);
    expect(figures.value(`${name}_sum`, { mcp_protocol_version: legacy })).toBeLessThan(60);
  });

  test('leaves nothing in flight', () => {
    expect(figures.value('mcpyard_requests_in_flight')).toBe(0);
  });
});

describe('streams of changes', () => {
  test('are counted on both sides while they are open', async () => {
    const upstream = await startUpstream();
    ends.push(() => upstream.stop());
    const gateway = await gatewayOf({ up: upstream.server });
    const active = async () => {
      const { value } = await scrape(gateway);
      const of = (side: string) => value('mcpyard_subscriptions_active', { side });
      return { downstream: of('downstream'), upstream: of('upstream') };
    };
    await expect.poll(active).toEqual({ downstream: 0, upstream: 1 });
    const listening = await openCall(gateway.url, 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
    });
    await listening.next();
    expect(await active()).toEqual({ downstream: 1, upstream: 1 });
    listening.close();
    await expect.poll(active).toEqual({ downstream: 0, upstream: 1 });
    await upstream.stop();
    await expect.poll(active).toEqual({ downstream: 0, upstream: 0 });
  });
});

test('Progress of a call is counted as it goes to the caller', async () => {
  const upstream = await startUpstream();
  ends.push(() => upstream.stop());
  const gateway = await gatewayOf({ up: upstream.server });
  await callTool(gateway.url, 'up__progress', { steps: 3 }, { meta: { progressToken: 'mine' } });
  const notifications = async (outcome: string) =>
    (await scrape(gateway)).value('mcpyard_notifications_total', { kind: 'progress', outcome });
  expect([await notifications('sent'), await notifications('dropped')]).toEqual([3, undefined]);
});

describe('children', () => {
  const answering = `
    on['server/discover'] = ({ reply }) => reply(discovered);
    on['tools/list'] = ({ reply }) => reply({ tools: ['exit', 'kill', 'close'].map((name) => ({ name, inputSchema: { type: 'object' } })), ttlMs: 60000, cacheScope: 'public' });
    on['tools/call'] = ({ params: { name } }) => {
      if (name === 'exit') process.exit(3);
      if (name === 'kill') process.kill(process.pid, 'SIGKILL');
      process.stdout.end();
    };`;

  test.each([
    ['exit', 'exit'],
    ['kill', 'signal'],
    ['close', 'pipe'],
  ])('that end by %s are restarts for the reason %s', async (name, reason) => {
    const child = childScript(answering);
    ends.push(() => child.stop());
    const gateway = await gatewayOf({ up: child.server });
    expect((await callTool(gateway.url, `up__${name}`)).response?.error?.code).toBe(5021);
    const restarts = async () => {
      const { samples } = await scrape(gateway);
      const rows = samples.filter((sample) => sample.name === 'mcpyard_child_restarts_total');
      return rows.map(({ labels, value }) => [labels['upstream'], labels['reason'], value]);
    };
    await expect.poll(restarts).toEqual([['up', reason, 1]]);
  });

  test('that never come up are restarts for the reason start', async () => {
    const gateway = await gatewayOf({ up: { command: [process.execPath, '-e', 'process.exit(1)'] } });
    const { value } = await scrape(gateway);
    expect(value('mcpyard_child_restarts_total', { upstream: 'up', reason: 'start' })).toBeGreaterThan(0);
  });
});

describe('the log of calls', () => {
  const script = modernScript(
    {
      'server/discover': () => discovered({ tools: {} }),
      'tools/list': () => ({ tools: [tool('good'), tool('bad')], ttlMs: 60_000, cacheScope: 'public' }),
      'tools/call': ({ params }) => ({
        content: [],
        resultType: 'complete',
        isError: params['name'] === 'bad',
      }),
    },
    { tools: {} },
  );
  const callLines = ({ lines }: Gateway) =>
    lines.filter(({ outcome }) => outcome !== undefined).map(({ tool: name, outcome }) => [name, outcome]);

  test.each([
    ['off', []],
    [undefined, [['up__bad', 'tool_error']]],
    [
      'all',
      [
        ['up__good', 'ok'],
        ['up__bad', 'tool_error'],
      ],
    ],
  ])('with log.calls %s has the lines %j', async (calls, expected) => {
    const log = calls === undefined ? {} : { log: { calls } };
    const gateway = await gatewayOf({ up: await serverOf(script) }, log);
    await callTool(gateway.url, 'up__good');
    await callTool(gateway.url, 'up__bad');
    expect(callLines(gateway)).toEqual(expected);
  });

  test('names the caller, the server and the figures', async () => {
    const gateway = await gatewayOf({ up: await serverOf(script) });
    const answer = await callTool(gateway.url, 'up__bad', { secret: 'of the caller' });
    expect(resultOf(answer)).toMatchObject({ isError: true });
    expect(gateway.lines.find(({ outcome }) => outcome !== undefined)).toMatchObject({
      level: 'warn',
      caller: expect.any(String),
      method: 'tools/call',
      tool: 'up__bad',
      upstream: 'up',
      ms: expect.any(Number),
      bytes: answer.raw.length,
    });
    expect(JSON.stringify(gateway.lines)).not.toContain('of the caller');
  });
});

test('A legacy server that shares a name with a modern one has a row of its own', async () => {
  const answers: Script = {
    'tools/list': () => ({ tools: [tool('same')], ttlMs: 60_000, cacheScope: 'public' }),
    'tools/call': () => ({ content: [] }),
  };
  const gateway = await gatewayOf({
    a: await serverOf(modernScript(answers)),
    b: await serverOf(legacyScript(answers)),
  });
  await callTool(gateway.url, 'a__same');
  await callTool(gateway.url, 'b__same');
  const { samples } = await scrape(gateway);
  const rows = samples.filter(({ name, labels }) => name === `${client}_count` && labels['gen_ai_tool_name']);
  expect(rows.map(({ labels }) => [labels['upstream'], labels['era'], labels['network_transport']])).toEqual([
    ['a', 'modern', 'tcp'],
    ['b', 'legacy', 'tcp'],
  ]);
});
