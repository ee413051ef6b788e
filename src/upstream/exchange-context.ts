/** What the two kinds of exchange share. */
import { scanUpstream, type UpstreamMessage } from '../protocol/answer.ts';
import type { Call, Reply } from '../protocol/call.ts';
import type { ScanOptions } from '../protocol/json.ts';
import type { Edit } from '../protocol/splice.ts';
import { ChannelError } from './channel.ts';
import type { CallExchange } from './exchange.ts';

export interface ExchangeContext {
  readonly upstream: string;
  readonly scan: ScanOptions;
  /** Whether the server speaks the modern era. */
  isModern(): boolean;
  /** How long an answer may be that is read whole. */
  readonly resultBytesMax: number;
  /** A message of the server that came before the answer; `exchange` is whose stream it came on. */
  message(bytes: Buffer, exchange: CallExchange | undefined): void;
  /** Takes a broken stream up again, where that can be; the returned function ends it. */
  resume(exchange: CallExchange, error: Error): (() => void) | undefined;
  /** The reply to what a modern server asks; undefined in the other era. */
  asked(message: UpstreamMessage & { readonly kind: 'result' }, call: Call): Reply | undefined;
  /** What has to change in a result that tells of a task; undefined where it tells of none, and in the other era. */
  taskEdit(message: UpstreamMessage & { readonly kind: 'result' }, call: Call): Edit | undefined;
  /** Whether the failure says that the server has forgotten the session. */
  isSessionLost(error: Error): boolean;
  /** The exchange is over, however it ended. */
  over(id: number, failure: Error | undefined): void;
}

/** An error status may carry a JSON-RPC error that was meant for this request. */
export function inStatus(error: Error, scan: ScanOptions): UpstreamMessage | undefined {
  if (!(error instanceof ChannelError) || error.http === undefined) return undefined;
  const message = scanUpstream(error.http.body, scan);
  return message.kind === 'error' ? message : undefined;
}
