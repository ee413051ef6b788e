import { describe, expect, test } from 'vitest';
import { createMetrics, type Metrics } from '../../src/observe/metrics.ts';
import { limitNames } from '../../src/protocol/limits.ts';
import { type Exposition, parseExposition } from './exposition-text.ts';

const read = async (metrics: Metrics): Promise<Exposition> =>
  parseExposition((await metrics.exposition()).text);

const server = 'mcp_server_operation_duration_seconds';
const client = 'mcp_client_operation_duration_seconds';
const revision = '2026-07-28';

const toolNames = (exposition: Exposition, metric: string): Set<string> =>
  new Set(
    exposition.samples
      .filter(({ name }) => name === `${metric}_count`)
      .map(({ labels }) => labels['gen_ai_tool_name'] ?? ''),
  );

describe('durations', () => {
  test('are counted in cumulative buckets, with sum and count', async () => {
    const metrics = createMetrics({ version: '1.2.3', buckets: [0.1, 1, 10] });
    for (const seconds of [0.05, 0.1, 0.5, 10, 11, 1_000])
      metrics.serverOperation('tools/call', 'a__b', undefined, undefined, revision, seconds);
    const labels = {
      gen_ai_tool_name: 'a__b',
      mcp_method_name: 'tools/call',
      mcp_protocol_version: revision,
    };
    const exposition = await read(metrics);
    const buckets = ['0.1', '1', '10', '+Inf'].map((le) =>
      exposition.value(`${server}_bucket`, { ...labels, le }),
    );
    expect(exposition.types.get(server)).toBe('histogram');
    expect(buckets).toEqual([2, 3, 4, 6]);
    expect(exposition.value(`${server}_count`, labels)).toBe(6);
    expect(exposition.value(`${server}_sum`, labels)).toBeCloseTo(1_021.65);
  });

  test('have the bucket bounds of the conventions', async () => {
    const metrics = createMetrics({ version: '1' });
    metrics.serverOperation('tools/list', undefined, undefined, undefined, revision, 0.001);
    const { samples } = await read(metrics);
    const bounds = samples
      .filter(({ name }) => name === `${server}_bucket`)
      .map(({ labels }) => labels['le']);
    expect(bounds.join(' ')).toBe('0.01 0.02 0.05 0.1 0.2 0.5 1 2 5 10 30 60 120 300 +Inf');
  });

  test('of each combination of labels are kept apart', async () => {
    const metrics = createMetrics({ version: '1' });
    const call = (tool: string, error: string | undefined, version: string) =>
      metrics.serverOperation('tools/call', tool, undefined, error, version, 1);
    call('x', undefined, revision);
    call('x', undefined, '2025-06-18');
    call('x', 'tool_error', revision);
    call('y', undefined, revision);
    call('x', undefined, revision);
    metrics.serverOperation('prompts/get', undefined, 'x', undefined, revision, 1);
    const exposition = await read(metrics);
    const count = (labels: Record<string, string>) => exposition.value(`${server}_count`, labels);
    const x = { gen_ai_tool_name: 'x', mcp_method_name: 'tools/call', mcp_protocol_version: revision };
    expect(count(x)).toBe(2);
    expect(count({ ...x, mcp_protocol_version: '2025-06-18' })).toBe(1);
    expect(count({ ...x, error_type: 'tool_error' })).toBe(1);
    expect(count({ ...x, gen_ai_tool_name: 'y' })).toBe(1);
    expect(
      count({ gen_ai_prompt_name: 'x', mcp_method_name: 'prompts/get', mcp_protocol_version: revision }),
    ).toBe(1);
  });

  test('of requests to upstreams carry the upstream, its transport and its era', async () => {
    const metrics = createMetrics({ version: '1' });
    metrics.clientOperation('files', 'tools/call', 'read', '-32603', 'pipe', 'legacy', 0.2);
    metrics.clientOperation('files', 'tools/list', undefined, undefined, 'pipe', 'legacy', 0.2);
    const exposition = await read(metrics);
    const labels = { upstream: 'files', network_transport: 'pipe', era: 'legacy' };
    const call = { ...labels, mcp_method_name: 'tools/call', gen_ai_tool_name: 'read', error_type: '-32603' };
    expect(exposition.value(`${client}_count`, call)).toBe(1);
    expect(exposition.value(`${client}_sum`, { ...labels, mcp_method_name: 'tools/list' })).toBe(0.2);
  });

  test.each([Number.NaN, -1, Infinity])('of %s count as zero', async (seconds) => {
    const metrics = createMetrics({ version: '1', buckets: [1] });
    metrics.serverOperation('ping', undefined, undefined, undefined, '2025-06-18', seconds);
    const labels = { mcp_method_name: 'ping', mcp_protocol_version: '2025-06-18' };
    const exposition = await read(metrics);
    expect(exposition.value(`${server}_sum`, labels)).toBe(0);
    expect(exposition.value(`${server}_bucket`, { ...labels, le: '1' })).toBe(1);
  });
});

describe('what goes with a request', () => {
  const labels = { mcp_method_name: 'tools/call', mcp_protocol_version: revision };

  test('are its bytes, under the labels of its duration', async () => {
    const metrics = createMetrics({ version: '1' });
    const call = (tool: string, error: string | undefined, request: number, response: number): void => {
      const operation = metrics.serverOperation('tools/call', tool, undefined, error, revision, 0.1);
      metrics.operationBytes(operation, request, response);
    };
    call('a', undefined, 100, 1_000);
    call('a', undefined, 10, 5);
    call('a', 'tool_error', 1, 2);
    const { value, types } = await read(metrics);
    const ofTool = { ...labels, gen_ai_tool_name: 'a' };
    const failed = { ...ofTool, error_type: 'tool_error' };
    expect(types.get('mcpyard_request_bytes_total')).toBe('counter');
    expect(value('mcpyard_request_bytes_total', ofTool)).toBe(110);
    expect(value('mcpyard_response_bytes_total', ofTool)).toBe(1_005);
    expect(value('mcpyard_request_bytes_total', failed)).toBe(1);
    expect(value('mcpyard_response_bytes_total', failed)).toBe(2);
    expect(value(`${server}_count`, ofTool)).toBe(2);
    expect(value(`${server}_sum`, ofTool)).toBeCloseTo(0.2);
  });

  test("is the gateway's own share, from 50 microseconds on", async () => {
    const metrics = createMetrics({ version: '1' });
    const call = (method: string, tool: string | undefined, seconds: number): void =>
      metrics.overhead(metrics.serverOperation(method, tool, undefined, undefined, revision, 1), seconds);
    for (const seconds of [0.00001, 0.00005, 0.00006]) call('tools/call', 'a', seconds);
    for (const seconds of [0.0004, 2]) call('tools/call', 'b', seconds);
    call('evil/method', undefined, 0.1);
    const { value } = await read(metrics);
    const sum = value('mcpyard_overhead_seconds_sum', { mcp_method_name: 'tools/call' });
    expect(sum).toBeCloseTo(2.00052);
    const upTo = (le: string) =>
      value('mcpyard_overhead_seconds_bucket', { mcp_method_name: 'tools/call', le });
    expect(['0.00005', '0.0001', '0.00025', '0.0005', '1', '+Inf'].map(upTo)).toEqual([2, 3, 3, 4, 4, 5]);
    expect(value('mcpyard_overhead_seconds_count', { mcp_method_name: '_OTHER' })).toBe(1);
  });
});

describe('sessions', () => {
  test('have the buckets of the conventions, and further ones up to a week', async () => {
    const metrics = createMetrics({ version: '1' });
    for (const seconds of [0.5, 7_200, 604_800]) metrics.sessionEnded('2025-06-18', seconds);
    const { samples, value } = await read(metrics);
    const name = 'mcp_server_session_duration_seconds';
    const bounds = samples.flatMap((sample) =>
      sample.name === `${name}_bucket` ? [sample.labels['le']] : [],
    );
    expect(bounds.join(' ')).toBe(
      '0.01 0.02 0.05 0.1 0.2 0.5 1 2 5 10 30 60 120 300 1800 3600 21600 86400 604800 +Inf',
    );
    const upTo = (le: string) => value(`${name}_bucket`, { mcp_protocol_version: '2025-06-18', le });
    expect(['300', '3600', '21600', '86400', '604800'].map(upTo)).toEqual([1, 1, 2, 2, 3]);
  });
});

describe('calls between eras', () => {
  test('are counted by both eras and by what became of them', async () => {
    const metrics = createMetrics({ version: '1' });
    metrics.eraBridge('modern', 'legacy', 'ok');
    metrics.eraBridge('modern', 'legacy', 'ok');
    metrics.eraBridge('legacy', 'modern', 'tool_error');
    const { value } = await read(metrics);
    const bridge = (client_era: string, upstream_era: string, outcome: string) =>
      value('mcpyard_era_bridge_total', { client_era, upstream_era, outcome });
    expect(bridge('modern', 'legacy', 'ok')).toBe(2);
    expect(bridge('legacy', 'modern', 'tool_error')).toBe(1);
    expect(bridge('legacy', 'modern', 'error')).toBe(0);
  });

  test('that ask their caller something are rounds', async () => {
    const metrics = createMetrics({ version: '1' });
    metrics.eraBridge('modern', 'legacy', 'input_required');
    metrics.eraBridge('modern', 'legacy', 'ok');
    const { value } = await read(metrics);
    const rounds = (client_era: string, upstream_era: string) =>
      value('mcpyard_input_required_rounds_total', { client_era, upstream_era });
    expect([rounds('modern', 'legacy'), rounds('legacy', 'legacy')]).toEqual([1, 0]);
  });
});

describe('labels', () => {
  test('that hold quotes, backslashes and line ends come out as they went in', async () => {
    const metrics = createMetrics({ version: '1' });
    const name = 'a"b\\n\n{}, c="\\';
    metrics.upstreamError(name, 'x');
    expect(
      (await read(metrics)).value('mcpyard_upstream_errors_total', { upstream: name, reason: 'x' }),
    ).toBe(1);
  });

  test('name at most 200 tools, and nothing is lost beyond that', async () => {
    const metrics = createMetrics({ version: '1' });
    for (let turn = 0; turn < 2; turn++)
      for (let tool = 0; tool < 250; tool++)
        metrics.serverOperation('tools/call', `t${tool}`, undefined, undefined, revision, 0.5);
    const exposition = await read(metrics);
    const names = toolNames(exposition, server);
    const rest = {
      gen_ai_tool_name: '_OTHER',
      mcp_method_name: 'tools/call',
      mcp_protocol_version: revision,
    };
    expect(names.size).toBe(201);
    expect(names.has('t199') && !names.has('t200')).toBe(true);
    expect(exposition.value(`${server}_count`, rest)).toBe(100);
    expect(exposition.value(`${server}_sum`, rest)).toBe(50);
    expect(exposition.value('mcpyard_limits_hit_total', { limit: 'metricLabels' })).toBe(100);
  });

  test('are not used up by names that nobody has', async () => {
    const metrics = createMetrics({ version: '1' });
    for (let tool = 0; tool < 300; tool++)
      metrics.serverOperation('tools/call', `bogus${tool}`, undefined, '-32602', revision, 0.1);
    metrics.serverOperation('tools/call', 'real', undefined, undefined, revision, 0.1);
    metrics.serverOperation('tools/call', 'real', undefined, '-32602', revision, 0.1);
    const exposition = await read(metrics);
    expect(toolNames(exposition, server)).toEqual(new Set(['_OTHER', 'real']));
    expect(
      exposition.value(`${server}_count`, {
        gen_ai_tool_name: 'real',
        mcp_method_name: 'tools/call',
        error_type: '-32602',
        mcp_protocol_version: revision,
      }),
    ).toBe(1);
    expect(exposition.value('mcpyard_limits_hit_total', { limit: 'metricLabels' })).toBe(0);
  });

  test('of unknown methods, revisions and overlong names are _OTHER', async () => {
    const metrics = createMetrics({ version: '1' });
    metrics.serverOperation('evil/method', undefined, undefined, '-32601', '1999-01-01', 0.1);
    metrics.serverOperation('', undefined, undefined, undefined, revision, 0.1);
    metrics.serverOperation('tools/call', 'x'.repeat(201), undefined, undefined, revision, 0.1);
    const exposition = await read(metrics);
    const count = (labels: Record<string, string>) => exposition.value(`${server}_count`, labels);
    expect(count({ mcp_method_name: '_OTHER', error_type: '-32601', mcp_protocol_version: '_OTHER' })).toBe(
      1,
    );
    expect(count({ mcp_protocol_version: revision })).toBe(1);
    expect(
      count({ gen_ai_tool_name: '_OTHER', mcp_method_name: 'tools/call', mcp_protocol_version: revision }),
    ).toBe(1);
  });

  test('of error codes that an upstream invents are bounded', async () => {
    const metrics = createMetrics({ version: '1' });
    for (let error = 0; error < 500; error++)
      metrics.clientOperation('u', 'tools/call', 't', String(error), 'pipe', 'modern', 0.1);
    const { samples } = await read(metrics);
    const counts = samples.filter(({ name }) => name === `${client}_count`);
    expect(counts).toHaveLength(65);
    expect(counts.reduce((sum, { value }) => sum + value, 0)).toBe(500);
  });

  test('never make more than 2,500 rows of a histogram, and every operation stays counted', async () => {
    const metrics = createMetrics({ version: '1', buckets: [1] });
    for (let tool = 0; tool < 150; tool++)
      for (let error = 0; error < 40; error++)
        metrics.serverOperation('tools/call', `t${tool}`, undefined, `e${error}`, revision, 0.1);
    const exposition = await read(metrics);
    const counts = exposition.samples.filter(({ name }) => name === `${server}_count`);
    expect(counts).toHaveLength(2_500);
    expect(counts.reduce((sum, { value }) => sum + value, 0)).toBe(6_000);
    expect(exposition.value('mcpyard_limits_hit_total', { limit: 'metricRows' })).toBe(3_501);
  });

  test('of headers and notifications are their known names', async () => {
    const metrics = createMetrics({ version: '1' });
    for (const header of ['Mcp-Name', 'mcp-name', 'Mcp-Param-City', 'X-Evil']) metrics.headerMismatch(header);
    metrics.notification('notifications/tools/list_changed', 'sent');
    metrics.notification('tools/list_changed', 'sent');
    metrics.notification('notifications/evil', 'dropped');
    const exposition = await read(metrics);
    const header = (name: string) => exposition.value('mcpyard_header_mismatch_total', { header: name });
    expect([header('mcp-name'), header('mcp-param'), header('_OTHER')]).toEqual([2, 1, 1]);
    const sent = { kind: 'tools/list_changed', outcome: 'sent' };
    expect(exposition.value('mcpyard_notifications_total', sent)).toBe(2);
    expect(exposition.value('mcpyard_notifications_total', { kind: '_OTHER', outcome: 'dropped' })).toBe(1);
  });
});

describe('counters and gauges', () => {
  test('say the version of mcpyard and of Node.js', async () => {
    const exposition = await read(createMetrics({ version: '9.8.7' }));
    const labels = { version: '9.8.7', node_version: process.version };
    expect(exposition.value('mcpyard_build_info', labels)).toBe(1);
  });

  test('count requests in flight', async () => {
    const metrics = createMetrics({ version: '1' });
    metrics.requestStarted();
    metrics.requestStarted();
    metrics.requestEnded();
    expect((await read(metrics)).value('mcpyard_requests_in_flight')).toBe(1);
    metrics.requestEnded();
    expect((await read(metrics)).value('mcpyard_requests_in_flight')).toBe(0);
  });

  test('show an upstream once, under its newest era and transport', async () => {
    const metrics = createMetrics({ version: '1' });
    metrics.upstreamUp('a', 'unknown', 'stdio', false);
    metrics.upstreamUp('b', 'modern', 'streamable-http', true);
    metrics.upstreamUp('a', 'legacy', 'stdio', true);
    const rows = (await read(metrics)).samples.filter(({ name }) => name === 'mcpyard_upstream_up');
    expect(rows.map(({ labels, value }) => [labels['upstream'], labels['era'], value])).toEqual([
      ['b', 'modern', 1],
      ['a', 'legacy', 1],
    ]);
  });

  test('forget the gauges of an upstream that is gone, and keep its counters', async () => {
    const metrics = createMetrics({ version: '1' });
    metrics.upstreamUp('a', 'legacy', 'stdio', true);
    metrics.upstreamItems('a', 'tools', 13, 1);
    metrics.childUp('a', true);
    metrics.upstreamError('a', 'exit');
    const before = await read(metrics);
    expect(before.value('mcpyard_upstream_tools', { upstream: 'a' })).toBe(13);
    expect(before.value('mcpyard_child_up', { upstream: 'a' })).toBe(1);
    metrics.upstreamGone('a');
    metrics.upstreamGone('never-was');
    const { samples } = await read(metrics);
    const left = samples.filter(({ labels }) => labels['upstream'] === 'a').map(({ name }) => name);
    expect(left).toEqual(['mcpyard_upstream_errors_total']);
  });

  test('count what happens to caches, children, limits and subscriptions', async () => {
    const metrics = createMetrics({ version: '1' });
    metrics.cacheRequest('tools/list', 'public', 'hit');
    metrics.cacheRequest('tools/list', 'public', 'hit');
    metrics.cacheRequest('tools/list', 'private', 'miss');
    metrics.childRestarted('a', 'exit');
    metrics.stderrBytes('a', 100);
    metrics.stderrBytes('a', 28);
    metrics.limitHit('listenStreams');
    metrics.subscriptions('downstream', 1);
    metrics.subscriptions('downstream', 1);
    metrics.subscriptions('downstream', -1);
    const { value } = await read(metrics);
    const cache = { method: 'tools/list', scope: 'public', result: 'hit' };
    expect(value('mcpyard_cache_requests_total', cache)).toBe(2);
    expect(value('mcpyard_cache_requests_total', { ...cache, scope: 'private', result: 'miss' })).toBe(1);
    expect(value('mcpyard_child_restarts_total', { upstream: 'a', reason: 'exit' })).toBe(1);
    expect(value('mcpyard_child_stderr_bytes_total', { upstream: 'a' })).toBe(128);
    expect(value('mcpyard_limits_hit_total', { limit: 'listenStreams' })).toBe(1);
    expect(value('mcpyard_subscriptions_active', { side: 'downstream' })).toBe(1);
    expect(value('mcpyard_subscriptions_active', { side: 'upstream' })).toBe(0);
  });

  test('know every limit from the start', async () => {
    const { samples } = await read(createMetrics({ version: '1' }));
    const rows = samples.filter(({ name }) => name === 'mcpyard_limits_hit_total');
    expect(rows.map(({ labels }) => labels['limit'])).toEqual([...limitNames]);
    expect(rows.every(({ value }) => value === 0)).toBe(true);
  });

  test('tell how long each merged list is', async () => {
    const metrics = createMetrics({ version: '1' });
    metrics.listBytes('tools', 10);
    metrics.listBytes('templates', 5);
    metrics.listBytes('tools', 20);
    const { value } = await read(metrics);
    expect(value('mcpyard_list_bytes', { kind: 'tools' })).toBe(20);
    expect(value('mcpyard_list_bytes', { kind: 'templates' })).toBe(5);
  });

  test('of two gateways in one process are kept apart', async () => {
    const one = createMetrics({ version: '1' });
    const two = createMetrics({ version: '2' });
    one.limitHit('body');
    expect((await read(two)).value('mcpyard_limits_hit_total', { limit: 'body' })).toBe(0);
  });
});
