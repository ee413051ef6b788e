import { expect, test } from 'vitest';
import { Call, okOutcome, type Reply } from '../../src/protocol/call.ts';
import { scanInbound } from '../../src/protocol/message.ts';
import { runAsTask } from '../../src/upstream/task-run.ts';

const scan = { strict: true, depthMax: 64 };

test('a server that starts a task with an answer that is no JSON is named in the error', async () => {
  const body = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}');
  const inbound = scanInbound(body, scan);
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  const call = new Call(inbound.request, { name: 'me' }, undefined, () => undefined);
  // Results are passed on as they came, and a raw tab in a long text is not looked for.
  const created: Reply = {
    parts: [Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"a\tb"}}}')],
    outcome: okOutcome,
    status: 200,
  };
  const run = runAsTask(call, () => body, {
    upstream: 'up',
    scan,
    exchange: () => Promise.resolve(created),
    own: () => body,
    cancelTask: () => undefined,
  });
  await expect(run).rejects.toMatchObject({ code: 5020, message: expect.stringContaining('`up`') });
});
