/** A shared server whose caller refused to answer, and the call that comes next. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Call, type Reply } from '../../src/protocol/call.ts';
import { scanInbound } from '../../src/protocol/message.ts';
import type { Live } from '../../src/upstream/state.ts';
import { childScript, type ScriptedChild } from '../support/scripted.ts';
import { send } from './calls.ts';
import { closeAll, openOne } from './opened.ts';

/** Each call asks its caller; what it does once that has refused is up to the test. */
const asking = (refused: string): string => `
on.initialize = ({ reply }) => reply(initialized);
const calls = [];
on['tools/call'] = ({ id }) => {
  calls.push(id);
  write({ id: 'q' + calls.length, method: 'elicitation/create', params: { message: 'Who?', requestedSchema: {} } });
};
on.undefined = async ({ id, error }) => {
  if (id === 'q1') { ${refused} }
  if (id === 'q2') write({ id: calls[1], error });
};
`;

let child: ScriptedChild | undefined;
afterEach(async () => {
  vi.useRealTimers();
  await closeAll();
  child?.stop();
});

/** Here no time passes, so that a slow machine is no slow child. */
async function open(refused: string): Promise<Live> {
  child = childScript(asking(refused));
  const live = await openOne(child.server).settled();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  return live;
}

function callOf(name: string): Call {
  const _meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } };
  const body = { jsonrpc: '2.0', id: name, method: 'tools/call', params: { name, _meta } };
  const inbound = scanInbound(Buffer.from(JSON.stringify(body)), { strict: true, depthMax: 64 });
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  return new Call(inbound.request, { name }, undefined, () => undefined);
}

const textOf = ({ parts }: Reply): string => Buffer.concat(parts).toString();

describe('after a caller of a shared child refused to answer', () => {
  test('the next call can be asked, though the child takes its time to end the one that was refused', async () => {
    const live = await open(`await sleep(200); write({ id: calls[0], result: { content: [] } });`);
    const gone = await send(live, callOf('ann'));
    gone.leave?.('refused');
    const next = await send(live, callOf('bob'));
    expect(textOf(next)).toContain('input_required');
  });

  test('a further question of its call reaches nobody else, though the child ends that without an answer', async () => {
    const live = await open(`
      await sleep(100);
      write({ id: 'late', method: 'elicitation/create', params: { message: 'for ann', requestedSchema: {} } });
      write({ id: calls[0], result: { content: [] } });
    `);
    const gone = await send(live, callOf('ann'));
    gone.leave?.('refused');
    const next = await send(live, callOf('bob'));
    expect(textOf(next)).toContain('Who?');
    const answers = child?.lines().map((line) => JSON.parse(line));
    expect(answers?.find(({ id }) => id === 'late')).toMatchObject({ result: { action: 'cancel' } });
  });
});
