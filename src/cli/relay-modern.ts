/** The modern half of a relay: each request of 2026-07-28 is a POST of its own, with the headers that mirror it. */
import { scanUpstream } from '../protocol/answer.ts';
import { bodyVersion } from '../protocol/era.ts';
import { code } from '../protocol/errors.ts';
import { encodeHeader } from '../protocol/headers.ts';
import { textOf } from '../protocol/json.ts';
import { idOf, paramOf, type RequestMessage, scanInbound } from '../protocol/message.ts';
import { methodOf } from '../protocol/methods.ts';
import { onOneLine } from '../protocol/splice.ts';
import { isRecord, type Json } from './post.ts';
import { isResponse, lost, refusalMessage, scan } from './relay-answer.ts';
import { exchange } from './relay-exchange.ts';
import { RelayParams } from './relay-params.ts';

export interface RelayModernOptions {
  readonly url: string;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Takes one whole message for the client. */
  write(message: Buffer): void;
}

const headerText = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

export class RelayModern {
  readonly #options: RelayModernOptions;
  readonly #params = new RelayParams();

  constructor(options: RelayModernOptions) {
    this.#options = options;
  }

  /** Hands on all that comes for a request; rejects where no answer does. */
  async send(request: RequestMessage, signal: AbortSignal): Promise<void> {
    if (!(await this.#sendOnce(request, signal, true))) return;
    await this.#params.learn(request, (method, params) => this.#ask(method, params, signal));
    await this.#sendOnce(request, signal, false);
  }

  /** True where it is worth a second try with other headers: then nothing was answered. */
  async #sendOnce(request: RequestMessage, signal: AbortSignal, mayRetry: boolean): Promise<boolean> {
    const { url, write } = this.#options;
    const id = idOf(request);
    let isAnswered = false;
    let isMismatch = false;
    const tell = (message: Buffer): void => {
      if (signal.aborted) return;
      const scanned = scanUpstream(message, scan.told);
      isMismatch = mayRetry && scanned.kind === 'error' && scanned.error.code === code.headerMismatch;
      if (isMismatch) return;
      isAnswered ||= isResponse(scanned);
      write(message);
      if (scanned.kind === 'result' && request.method === 'subscriptions/listen') write(ended(id));
    };
    const headers = { ...this.#options.headers, ...mirrored(request, this.#params.headersOf(request)) };
    const body = onOneLine(request.bytes);
    const received = await exchange(url, { method: 'POST', headers, body, signal }, tell);
    if (received.refusal !== undefined) tell(refusalMessage(received.status, received.refusal, id));
    else if (!isAnswered && !isMismatch && !signal.aborted) throw lost(received);
    return isMismatch;
  }

  /** A request of the relay's own. */
  async #ask(method: string, params: Json, signal: AbortSignal): Promise<Json | undefined> {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'relay', method, params }));
    const inbound = scanInbound(body, scan.said);
    if (inbound.kind !== 'request') return undefined;
    let result: unknown;
    const headers = { ...this.#options.headers, ...mirrored(inbound.request, []) };
    await exchange(this.#options.url, { method: 'POST', headers, body, signal }, (message) => {
      const parsed: unknown = JSON.parse(message.toString('utf8'));
      if (isRecord(parsed)) result ??= parsed['result'];
    });
    return isRecord(result) ? result : undefined;
  }
}

/** On stdio the end of a listen is followed by this (2026-07-28, Cancellation). */
const ended = (id: Buffer): Buffer =>
  Buffer.from(
    `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id.toString('utf8')}}}`,
  );

/** The headers that mirror a request (2026-07-28, "Standard Request Headers"). */
function mirrored(request: RequestMessage, params: readonly string[]): Record<string, string> {
  const { bytes, method, meta } = request;
  const version = bodyVersion(bytes, meta) ?? '';
  const nameParam = methodOf(method)?.nameParam;
  const name = nameParam === undefined ? undefined : textOf(bytes, paramOf(request, nameParam));
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(headerText.test(version) ? { 'mcp-protocol-version': version } : {}),
    ...(headerText.test(method) ? { 'mcp-method': method } : {}),
    ...(name === undefined ? {} : { 'mcp-name': encodeHeader(name) }),
  };
  for (let at = 0; at < params.length; at += 2) headers[params[at] ?? ''] = params[at + 1] ?? '';
  return headers;
}
