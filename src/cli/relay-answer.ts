/** What a client of the relay is told where the gateway gave no answer of its own. */
import type { Log } from '../observe/log.ts';
import { scanUpstream, type UpstreamMessage } from '../protocol/answer.ts';
import { asRpcError, errorMessage, own, RpcError } from '../protocol/errors.ts';
import { skipSpace } from '../protocol/json.ts';
import { scanInbound } from '../protocol/message.ts';

/** How messages are scanned: those of the client, which are sent on, and those of the gateway. */
export const scan = {
  said: { strict: true, depthMax: 1_000 },
  told: { strict: false, depthMax: 1_000 },
};

export const isResponse = ({ kind }: UpstreamMessage): boolean => kind === 'result' || kind === 'error';

/** The body of an error status: the gateway's own error, under the id of the request, or one that tells the status. */
export function refusalMessage(status: number, body: Buffer, id: Buffer | undefined): Buffer {
  const scanned = scanUpstream(body, scan.told);
  if (scanned.kind !== 'error')
    return errorMessage(id, new RpcError(own.upstreamBroken, `The gateway answered HTTP ${status}`));
  if (scanned.id !== undefined) return body;
  const { error } = scanned;
  return errorMessage(id, new RpcError(error.code, error.message, { data: error.data }));
}

/** Whether it is one of JSON-RPC, or a batch of them. */
export function isMessage(text: Buffer): boolean {
  if (text[skipSpace(text, 0)] !== 0x5b) return scanUpstream(text, scan.told).kind !== 'noise';
  return scanInbound(text, scan.said).kind === 'batch';
}

/** The answer ended before it was there. */
export const lost = ({
  status,
  broken,
}: {
  readonly status: number;
  readonly broken: Error | undefined;
}): RpcError => {
  const why = broken === undefined ? `HTTP ${status}` : broken.message;
  const message = `The gateway gave no answer (${why}); the call may or may not have run`;
  return new RpcError(own.upstreamLost, message, { cause: broken });
};

/** What went wrong with a request: fetch says with a TypeError that no answer began. */
export function failureOf(error: unknown, log: Log): RpcError {
  if (error instanceof RpcError) return error;
  if (!(error instanceof TypeError)) {
    log.error({ err: error }, 'a request failed by a fault of the relay');
    return asRpcError(error);
  }
  const why = error.cause instanceof Error ? error.cause.message : error.message;
  log.warn({ err: error }, 'The gateway can not be reached');
  const message = `The gateway can't be reached (${why}); the call may or may not have run`;
  return new RpcError(own.upstreamDown, message, { cause: error });
}
