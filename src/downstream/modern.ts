/** The edge towards clients of 2026-07-28: from an HTTP request with its body to a call, and back. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Handler } from '../gateway/layers.ts';
import type { Notices } from '../gateway/notices.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import { Call, type Caller } from '../protocol/call.ts';
import { asRpcError, code, errorMessage, RpcError } from '../protocol/errors.ts';
import { textOf } from '../protocol/json.ts';
import { climb } from '../protocol/ladder.ts';
import { type InboundMessage, idOf, paramOf, type RequestMessage } from '../protocol/message.ts';
import type { TurnEnd } from '../protocol/turn.ts';
import { header } from './header.ts';
import { kindOf } from './inbound-request.ts';
import { paramPrefix } from './known-names.ts';
import { peerPath } from './peer-lines.ts';
import type { Peers } from './peers.ts';
import { answer } from './refuse.ts';
import { Responder } from './respond.ts';
import type { Silence } from './silence.ts';

export interface ModernOptions {
  readonly handler: Handler;
  readonly notices: Notices;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly supported: readonly string[];
  readonly silence: Silence;
  readonly turn: TurnEnd;
  readonly bufferBytesMax: number;
  /** The others, where there are any that have calls which wait for answers. */
  readonly peers?: Peers;
}

const goneState =
  'Invalid params: "requestState" has expired or was used before; send the request again without it';
const noHeaders: ReadonlyMap<string, string> = new Map();

const isParam = (name: string): boolean =>
  // Few others have this letter there.
  (name[4] === 'p' || name[4] === 'P') && name.toLowerCase().startsWith(paramPrefix);

function paramHeaders(req: IncomingMessage): ReadonlyMap<string, string> {
  if (kindOf(req)?.hasParams === false) return noHeaders;
  let found: Map<string, string> | undefined;
  const { rawHeaders } = req;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const raw = rawHeaders[at];
    if (raw === undefined || !isParam(raw)) continue;
    const name = raw.toLowerCase();
    found ??= new Map();
    found.set(name, header(req, name) ?? '');
  }
  return found ?? noHeaders;
}

const refused = (errorCode: number, message: string, data?: unknown): RpcError =>
  new RpcError(errorCode, message, { status: 400, ...(data === undefined ? {} : { data }) });

/** Answers one POST of a modern client. */
export function receive(
  req: IncomingMessage,
  res: ServerResponse,
  inbound: InboundMessage,
  caller: Caller,
  arrivedMs: number,
  options: ModernOptions,
): void {
  if (options.peers !== undefined && isElsewhere(req, res, inbound, caller, options.peers)) return;
  const responder = new Responder(res, options);
  switch (inbound.kind) {
    case 'invalid':
      if (inbound.error.limit !== undefined) options.metrics.limitHit(inbound.error.limit);
      responder.error(inbound.id, inbound.error);
      return;
    case 'batch':
      responder.error(
        undefined,
        refused(code.invalidRequest, 'Invalid request: batches are not part of this revision'),
      );
      return;
    case 'response':
      responder.error(undefined, refused(code.invalidRequest, 'Invalid request: clients send no responses'));
      return;
    case 'notification':
      options.notices(inbound, caller);
      responder.empty(202);
      return;
    case 'request': {
      const refusal = refusalOf(req, inbound.request, options);
      if (refusal !== undefined) {
        responder.error(idOf(inbound.request), refusal);
        return;
      }
      const deliver = (message: Buffer): void => responder.notify(message);
      const call = new Call(inbound.request, caller, paramHeaders(req), deliver);
      call.arrivedMs = arrivedMs;
      responder.answers(call);
      run(call, responder, options);
      return;
    }
    default:
      throw inbound satisfies never;
  }
}

/** A call that another process has, which waits for the answers that this brings, is sent on to it. */
function isElsewhere(
  req: IncomingMessage,
  res: ServerResponse,
  inbound: InboundMessage,
  caller: Caller,
  peers: Peers,
): boolean {
  if (inbound.kind !== 'request') return false;
  const { request } = inbound;
  const state = paramOf(request, 'requestState');
  if (state === undefined) return false;
  const to = peers.ownerOf(textOf(request.bytes, state) ?? '');
  if (to === undefined) return false;
  const absent = (): void => {
    const gone = new RpcError(code.invalidParams, goneState);
    answer(res, gone.status, errorMessage(idOf(request), gone));
  };
  peers.forward(req, res, { to, path: peerPath.call, caller, body: request.bytes, absent });
  return true;
}

function refusalOf(
  req: IncomingMessage,
  request: RequestMessage,
  options: ModernOptions,
): RpcError | undefined {
  const { supported } = options;
  const refusal = climb({ request, supported, header: (name) => header(req, name) });
  if (refusal?.header !== undefined) options.metrics.headerMismatch(refusal.header);
  return refusal?.error;
}

function run(call: Call, responder: Responder, options: ModernOptions): void {
  options.handler(call).then(
    (reply) => {
      try {
        responder.reply(reply);
      } catch (error) {
        // Part of it may have left, so that no other answer can follow.
        options.log.error({ err: error, method: call.request.method }, 'Bug: an answer could not be written');
        responder.drop();
      }
    },
    (error: unknown) => {
      const known = asRpcError(error);
      if (known !== error)
        options.log.error(
          { err: error, method: call.request.method },
          'a call failed by a fault of the gateway',
        );
      responder.error(idOf(call.request), known);
    },
  );
}
