/** Calls as a gateway would send them to one upstream. */
import { Call, type Reply } from '../../src/protocol/call.ts';
import { paramOf, scanInbound } from '../../src/protocol/message.ts';
import type { Live } from '../../src/upstream/state.ts';

/** A `tools/call` of nobody's. */
export function callOf(name: string): Call {
  const params = {
    name,
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  };
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }));
  const inbound = scanInbound(body, { strict: true, depthMax: 64 });
  if (inbound.kind !== 'request') throw new Error(inbound.kind);
  return new Call(inbound.request, { name: 'nobody' }, new Map(), () => undefined);
}

/** Sends it for the tool `x`. */
export const send = ({ connection }: Live, call: Call): Promise<Reply> =>
  connection.send(call, { member: paramOf(call.request, 'name'), name: 'x', paramHeaders: [] });
