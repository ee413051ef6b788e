/** Answers of the listener itself, in JSON. */
import type { ServerResponse } from 'node:http';
import { code, errorMessage, RpcError } from '../protocol/errors.ts';

/** A body that is not wanted is read and thrown away for so long, so that the client gets to read why. */
const discardMs = 5_000;

/**
 * Sends a whole body; `headers` are names and values in turn. Where the request is still coming, the response ends with it:
 * Node.js would else reset the connection under a client that asked for its close, and the answer would be lost.
 */
export function answer(
  res: ServerResponse,
  status: number,
  body: Buffer | string,
  headers: readonly string[] = [],
): void {
  const { req } = res;
  res.writeHead(status, [
    'Content-Type',
    'application/json',
    'Content-Length',
    String(Buffer.byteLength(body)),
    ...headers,
  ]);
  if (req.complete) {
    res.end(body);
    return;
  }
  res.write(body);
  const timer = setTimeout(() => req.destroy(), discardMs);
  req.once('end', () => res.end());
  req.once('close', () => clearTimeout(timer));
  req.resume();
}

/** Sends a JSON-RPC error without an id, as the specification has it for what is refused before it is read. */
export const refuse = (
  res: ServerResponse,
  status: number,
  message: string,
  headers?: readonly string[],
): void => answer(res, status, errorMessage(undefined, new RpcError(code.invalidRequest, message)), headers);
