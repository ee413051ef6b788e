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

/** What OpenSSL has against a certificate, which it says before anything goes over the connection. */
const distrust =
  /^(?:CERT_|CRL_|UNABLE_TO_|ERROR_IN_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|INVALID_(?:CA|PURPOSE)|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH)/;
const unopened: ReadonlySet<unknown> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_SSL_WRONG_VERSION_NUMBER',
]);
const openingCalls: ReadonlySet<unknown> = new Set(['connect', 'getaddrinfo']);

/** Whether there was never a connection on which something could have been sent; false where that is not known. */
function isUnsent(cause: unknown): boolean {
  if (cause instanceof AggregateError) return cause.errors.every(isUnsent);
  if (!(cause instanceof Error)) return false;
  const { code: name, syscall } = cause as NodeJS.ErrnoException;
  return openingCalls.has(syscall) || unopened.has(name) || (name !== undefined && distrust.test(name));
}

/** What tried several addresses says nothing itself. */
const wordsOf = (cause: Error): string =>
  cause.message === '' && cause instanceof AggregateError && cause.errors[0] instanceof Error
    ? cause.errors[0].message
    : cause.message;

/** What went wrong with a request: fetch says with a TypeError that no answer began. */
export function failureOf(error: unknown, log: Log): RpcError {
  if (error instanceof RpcError) return error;
  if (!(error instanceof TypeError)) {
    log.error({ err: error }, 'a request failed by a fault of the relay');
    return asRpcError(error);
  }
  const why = error.cause instanceof Error ? wordsOf(error.cause) : error.message;
  log.warn({ err: error }, 'The gateway can not be reached');
  const effect = isUnsent(error.cause) ? 'nothing was sent' : 'the call may or may not have run';
  const message = `The gateway can't be reached (${why}); ${effect}`;
  return new RpcError(own.upstreamDown, message, { cause: error });
}
