/** Tells the eras apart: each message goes to the edge of its own. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../protocol/call.ts';
import { eraOf, isLegacyVersion } from '../protocol/era.ts';
import type { ScanOptions } from '../protocol/json.ts';
import { type InboundMessage, scanInbound } from '../protocol/message.ts';
import { header } from './header.ts';
import type { LegacyEdge } from './legacy.ts';
import { type ModernOptions, receive } from './modern.ts';
import type { Peers } from './peers.ts';
import type { SseEdge } from './sse-edge.ts';

export interface Edges {
  readonly modern: ModernOptions;
  readonly legacy: LegacyEdge;
  /** Absent where clients of 2024-11-05 are not served over HTTP+SSE. */
  readonly sse?: SseEdge;
  /** The other processes, where there are any to send requests on to. */
  readonly peers?: Peers;
  readonly scan: ScanOptions;
  readonly nowMs: () => number;
}

/** Whether the headers alone speak of a legacy session. */
export function hasSession(req: IncomingMessage): boolean {
  const version = header(req, 'mcp-protocol-version');
  return header(req, 'mcp-session-id') !== undefined && (version === undefined || isLegacyVersion(version));
}

function isLegacy(req: IncomingMessage, inbound: InboundMessage): boolean {
  const versionHeader = header(req, 'mcp-protocol-version');
  switch (inbound.kind) {
    case 'request': {
      const { bytes, method, meta } = inbound.request;
      return eraOf({ bytes, method, meta, versionHeader }) === 'legacy';
    }
    case 'batch':
      return versionHeader !== undefined ? isLegacyVersion(versionHeader) : hasSession(req);
    case 'notification':
    case 'response':
      return hasSession(req);
    case 'invalid':
      return false;
    default:
      throw inbound satisfies never;
  }
}

/** Answers one POST whose body is whole. */
export function receivePost(
  req: IncomingMessage,
  res: ServerResponse,
  body: Buffer,
  caller: Caller,
  edges: Edges,
): void {
  const arrivedMs = edges.nowMs();
  const inbound = scanInbound(body, edges.scan);
  if (isLegacy(req, inbound)) edges.legacy.post(req, res, { inbound, body, caller, arrivedMs });
  else receive(req, res, inbound, caller, arrivedMs, edges.modern);
}
