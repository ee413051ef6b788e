/** What one gateway of several processes does for clients that ask nothing of it but answers, in front of servers of all kinds. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openSession } from '../support/legacy-session.ts';
import { call, callTool, resultOf, textOf } from '../support/modern-client.ts';
import { endAll, type Workers, workersOfCalls } from './gateway.ts';
import { type Kinds, kinds, startKinds } from './kinds.ts';

let all: Kinds;
let workers: Workers;
beforeAll(async () => {
  all = await startKinds();
  workers = await all.serve();
});
afterAll(async () => {
  await endAll();
  await all?.stop();
});

type Labels = Readonly<Record<string, string>>;

/** What one scrape says; `counted` is the sum over all samples with these labels. */
async function countsOf({ scrape }: Workers) {
  const { samples, value } = await scrape();
  const counted = (name: string, labels: Labels): number =>
    samples
      .filter(
        (sample) => sample.name === name && Object.entries(labels).every(([k, v]) => sample.labels[k] === v),
      )
      .reduce((sum, sample) => sum + sample.value, 0);
  return { counted, value };
}

const canElicit = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
const accepted = { action: 'accept', content: { answer: 'Ann' } };

describe('calls over many connections', () => {
  test('are answered for clients and servers of both eras, and one scrape adds up to them', async () => {
    const perKind = 10;
    const before = await countsOf(workers);
    const callsBefore = workersOfCalls(workers).length;
    const session = await openSession(workers.url);
    for (const kind of kinds) {
      const modern = Array.from({ length: perKind }, (_, at) =>
        callTool(workers.url, `${kind}__echo`, { at }),
      );
      const legacy = Array.from({ length: perKind }, (_, at) =>
        session.ask('tools/call', { name: `${kind}__echo`, arguments: { at } }),
      );
      for (const [at, answer] of (await Promise.all([...modern, ...legacy])).entries())
        expect(textOf(answer)).toBe(`{"at":${at % perKind}}`);
    }
    expect(new Set(workersOfCalls(workers).slice(callsBefore))).toEqual(new Set(['w0', 'w1']));
    const after = await countsOf(workers);
    const added = (name: string, labels: Labels): number =>
      after.counted(name, labels) - before.counted(name, labels);
    for (const kind of kinds) {
      const tool = { mcp_method_name: 'tools/call', gen_ai_tool_name: `${kind}__echo` };
      expect([kind, added('mcp_server_operation_duration_seconds_count', tool)]).toEqual([kind, 2 * perKind]);
      const sent = { upstream: kind, mcp_method_name: 'tools/call' };
      expect([kind, added('mcp_client_operation_duration_seconds_count', sent)]).toEqual([kind, 2 * perKind]);
      expect(after.counted('mcpyard_upstream_up', { upstream: kind })).toBe(1);
    }
    expect(added('mcpyard_era_bridge_total', {})).toBe(kinds.length * 2 * perKind);
    expect(after.counted('mcpyard_child_up', {})).toBe(2);
    expect(after.value('mcpyard_requests_in_flight')).toBe(0);
  });

  test('reach one child of each server, whatever the number of workers', () => {
    expect(all.pidsOf('kid')).toHaveLength(1);
    expect(all.pidsOf('oldKid')).toHaveLength(1);
  });
});

describe('a question', () => {
  test.each(kinds)(
    'of %s to a session is answered over another connection than that of its call',
    async (kind) => {
      const session = await openSession(workers.url, { elicitation: {} });
      // The answer comes to the worker of the call, and to the other one.
      for (let at = 0; at < 2; at++) {
        const asking = await session.open('tools/call', {
          name: `${kind}__ask`,
          arguments: { kind: 'elicitation' },
        });
        const question = await asking.next();
        expect(question.method).toBe('elicitation/create');
        if (at === 1) await callTool(workers.url, 'web__echo');
        await session.answer(question.id, accepted);
        const { response } = await asking.done;
        expect(JSON.stringify(response?.result)).toContain('Ann');
      }
    },
  );

  test.each(kinds)(
    'of %s to a client of 2026-07-28 is answered by a retry, to whichever worker',
    async (kind) => {
      const name = `${kind}__ask`;
      for (let at = 0; at < 2; at++) {
        const args = { kind: 'elicitation', text: `Round ${at}` };
        const first = resultOf(
          await call(workers.url, 'tools/call', { name, arguments: args }, { meta: canElicit }),
        );
        expect(first['resultType']).toBe('input_required');
        const [key = ''] = Object.keys(first['inputRequests'] as object);
        if (at === 1) await callTool(workers.url, 'web__echo');
        const retry = {
          name,
          arguments: args,
          inputResponses: { [key]: accepted },
          requestState: first['requestState'],
        };
        const answer = await call(workers.url, 'tools/call', retry, { meta: canElicit });
        expect(textOf(answer)).toContain('Ann');
      }
    },
  );
});
