/** Relays one client on stdin and stdout to a gateway that runs elsewhere, in whichever era each message is of. */
import type { Readable, Writable } from 'node:stream';
import type { Log } from '../observe/log.ts';
import { scanUpstream, type UpstreamMessage } from '../protocol/answer.ts';
import { bodyVersion, eraOf } from '../protocol/era.ts';
import { asRpcError, code, errorMessage, own, RpcError } from '../protocol/errors.ts';
import { encodeHeader } from '../protocol/headers.ts';
import { textOf } from '../protocol/json.ts';
import { LineSplitter, trimmed } from '../protocol/lines.ts';
import { type InboundMessage, idOf, paramOf, type RequestMessage, scanInbound } from '../protocol/message.ts';
import { methodOf } from '../protocol/methods.ts';
import { onOneLine } from '../protocol/splice.ts';
import { isRecord, type Json } from './post.ts';
import { exchange, type Received } from './relay-exchange.ts';
import { RelayParams } from './relay-params.ts';
import { RelaySession } from './relay-session.ts';

export interface RelayOptions {
  readonly url: string;
  /** Sent as the bearer's. */
  readonly key: string | undefined;
  readonly input: Readable;
  readonly output: Writable;
  readonly log: Log;
}

const lineBytesMax = 64 * 1024 * 1024;
const requestsMax = 1_000;
/** Unsent bytes beyond which nothing more is read. */
const bufferBytesMax = 4 * 1024 * 1024;
const scan = { strict: true, depthMax: 1_000 };
const answerScan = { strict: false, depthMax: 1_000 };
const newline = Buffer.from('\n');
const headerText = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** What a request waits for. */
interface Open {
  readonly abort: AbortController;
  readonly era: 'modern' | 'legacy';
}

export class Relay {
  /** Resolves when the client has closed its end of either stream. */
  readonly ended: Promise<void>;
  readonly #options: RelayOptions;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #session: RelaySession;
  readonly #params = new RelayParams();
  readonly #closing = new AbortController();
  /** By the id as written; a batch has a key of its own. */
  readonly #open = new Map<string, Open>();
  #idle: (() => void) | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    const { url, key, input, output } = options;
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    this.#session = new RelaySession({
      url,
      headers: this.#headers,
      signal: this.#closing.signal,
      tell: (message) => this.#write(message),
    });
    const lines = new LineSplitter(
      lineBytesMax,
      (line) => this.#line(trimmed(line)),
      () => this.#fail(undefined, new RpcError(own.overLimit, `A line is longer than ${lineBytesMax} bytes`)),
    );
    this.ended = new Promise((resolve) => {
      input.on('data', (chunk: Buffer) => {
        lines.push(chunk);
        this.#hold();
      });
      for (const event of ['end', 'close', 'error']) input.on(event, () => resolve());
      for (const event of ['close', 'error']) output.on(event, () => resolve());
    });
  }

  /** Lets what is open end within `drainMs`, then ends it and the session. */
  async stop(drainMs: number): Promise<void> {
    if (this.#open.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, drainMs);
        this.#idle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#closing.abort();
    for (const { abort } of this.#open.values()) abort.abort();
    await this.#session.end();
  }

  #line(line: Buffer): void {
    const inbound = scanInbound(line, scan);
    switch (inbound.kind) {
      case 'invalid':
        this.#fail(inbound.id, inbound.error);
        return;
      case 'request':
        this.#request(inbound.request, line);
        return;
      case 'notification':
        this.#notification(inbound, line);
        return;
      case 'response':
        void this.#post(line);
        return;
      case 'batch':
        void this.#track('[]', 'legacy', undefined, () => this.#postAwaited(line, undefined));
        return;
      default:
        throw inbound satisfies never;
    }
  }

  #request(request: RequestMessage, line: Buffer): void {
    const { bytes, method, meta } = request;
    const id = idOf(request);
    const key = id.toString('utf8');
    const era = eraOf({ bytes, method, meta, versionHeader: undefined });
    void this.#track(key, era, id, (signal) => {
      if (era === 'modern') return this.#modern(request, signal);
      return method === 'initialize' ? this.#begin(line, id) : this.#postAwaited(line, id);
    });
  }

  #notification(inbound: InboundMessage & { readonly kind: 'notification' }, line: Buffer): void {
    if (inbound.method === 'notifications/cancelled') {
      const { params } = JSON.parse(line.toString('utf8')) as { params?: { requestId?: unknown } };
      const key = JSON.stringify(params?.requestId);
      const open = this.#open.get(key);
      if (open?.era === 'modern') {
        // Over HTTP the closed stream says it.
        this.#open.delete(key);
        open.abort.abort();
        return;
      }
      if (open !== undefined) this.#open.delete(key);
    }
    void this.#post(line).then(() => {
      if (inbound.method === 'notifications/initialized') this.#session.listen();
    });
  }

  /** Runs a request, so that its client gets exactly one answer, and none once it was cancelled. */
  async #track(
    key: string,
    era: Open['era'],
    id: Buffer | undefined,
    run: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const isTaken = id !== undefined && this.#open.has(key);
    if (isTaken || this.#open.size >= requestsMax) {
      const why = isTaken
        ? `a request with the id ${key} is open already`
        : `${requestsMax} requests are open`;
      this.#fail(id, new RpcError(isTaken ? code.invalidRequest : own.overLimit, `Refused: ${why}`));
      return;
    }
    const open = { abort: new AbortController(), era };
    this.#open.set(key, open);
    try {
      await run(open.abort.signal);
    } catch (error) {
      if (this.#open.get(key) === open) this.#fail(id, this.#failure(error));
    }
    if (this.#open.get(key) === open) this.#open.delete(key);
    if (this.#open.size === 0) this.#idle?.();
  }

  async #modern(request: RequestMessage, signal: AbortSignal): Promise<void> {
    const id = idOf(request);
    const again = await this.#modernOnce(request, signal, true);
    if (!again) return;
    await this.#params.learn(request, (method, params) => this.#ask(method, params, signal));
    await this.#modernOnce(request, signal, false).then((failed) => {
      if (failed) this.#fail(id, new RpcError(own.upstreamBroken, 'The gateway gave no answer'));
    });
  }

  /** True where it is worth a second try with other headers: then nothing was answered. */
  async #modernOnce(request: RequestMessage, signal: AbortSignal, mayRetry: boolean): Promise<boolean> {
    const id = idOf(request);
    const key = id.toString('utf8');
    let isAnswered = false;
    let isMismatch = false;
    const tell = (message: Buffer): void => {
      if (signal.aborted) return;
      const scanned = scanUpstream(message, answerScan);
      isMismatch = mayRetry && scanned.kind === 'error' && scanned.error.code === code.headerMismatch;
      if (isMismatch) return;
      isAnswered ||= isResponse(scanned);
      this.#write(message);
      if (scanned.kind === 'result' && request.method === 'subscriptions/listen') this.#write(ended(key));
    };
    const { url } = this.#options;
    const headers = { ...this.#headers, ...modernHeaders(request, this.#params.headersOf(request)) };
    const body = onOneLine(request.bytes);
    const received = await exchange(url, { method: 'POST', headers, body, signal }, tell);
    if (received.refusal !== undefined) this.#tellRefusal(received, received.refusal, id, tell);
    else if (!isAnswered && !isMismatch && !signal.aborted) throw lost(received);
    return isMismatch;
  }

  /** A request of the relay's own. */
  async #ask(method: string, params: Json, signal: AbortSignal): Promise<Json | undefined> {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'relay', method, params }));
    const inbound = scanInbound(body, scan);
    if (inbound.kind !== 'request') return undefined;
    let result: unknown;
    const headers = { ...this.#headers, ...modernHeaders(inbound.request, []) };
    await exchange(this.#options.url, { method: 'POST', headers, body, signal }, (message) => {
      const parsed: unknown = JSON.parse(message.toString('utf8'));
      if (isRecord(parsed)) result ??= parsed['result'];
    });
    return isRecord(result) ? result : undefined;
  }

  async #begin(body: Buffer, id: Buffer): Promise<void> {
    let isAnswered = false;
    const tell = (message: Buffer): void => {
      isAnswered = true;
      this.#write(message);
    };
    const received = await this.#session.begin(body, tell);
    if (received.refusal !== undefined) this.#tellRefusal(received, received.refusal, id, tell);
    else if (!isAnswered) throw lost(received);
  }

  /** A request of the legacy era, or a batch. */
  async #postAwaited(body: Buffer, id: Buffer | undefined): Promise<void> {
    const key = id?.toString('utf8') ?? '[]';
    let isAnswered = false;
    const tell = (message: Buffer): void => {
      const scanned = scanUpstream(message, answerScan);
      isAnswered ||= isResponse(scanned) || id === undefined;
      // The answer to what was cancelled is for nobody.
      if (isResponse(scanned) && !this.#open.has(key)) return;
      this.#write(message);
    };
    const received = await this.#session.post(body, () => isAnswered, tell);
    if (received.refusal !== undefined) this.#tellRefusal(received, received.refusal, id, tell);
    else if (!isAnswered && id !== undefined) throw lost(received);
  }

  /** A message that has no answer. */
  async #post(body: Buffer): Promise<void> {
    try {
      const received = await this.#session.post(
        body,
        () => true,
        () => undefined,
      );
      const { status, refusal } = received;
      if (refusal !== undefined) this.#options.log.debug({ status }, 'The gateway refused a message');
    } catch (error) {
      this.#options.log.warn({ err: error }, 'A message did not reach the gateway');
    }
  }

  /** What the gateway said with an error status: its own error where it is about this request, else one that tells the status. */
  #tellRefusal(
    { status }: Received,
    refusal: Buffer,
    id: Buffer | undefined,
    tell: (message: Buffer) => void,
  ): void {
    const scanned = scanUpstream(refusal, answerScan);
    if (scanned.kind === 'error' && scanned.id !== undefined) {
      tell(refusal);
      return;
    }
    const error =
      scanned.kind === 'error'
        ? new RpcError(scanned.error.code, scanned.error.message, { data: scanned.error.data })
        : new RpcError(own.upstreamBroken, `The gateway answered HTTP ${status}`);
    tell(errorMessage(id, error));
  }

  #failure(error: unknown): RpcError {
    if (error instanceof RpcError) return error;
    if (!(error instanceof TypeError)) {
      this.#options.log.error({ err: error }, 'a request failed by a fault of the relay');
      return asRpcError(error);
    }
    const why = error.cause instanceof Error ? error.cause.message : error.message;
    this.#options.log.warn({ err: error }, 'The gateway can not be reached');
    const message = `The gateway can't be reached (${why}); the call may or may not have run`;
    return new RpcError(own.upstreamDown, message, { cause: error });
  }

  #fail(id: Buffer | undefined, error: RpcError): void {
    this.#write(errorMessage(id, error));
  }

  #write(message: Buffer): void {
    const { output } = this.#options;
    if (this.#closing.signal.aborted || !output.writable) return;
    output.write(onOneLine(message));
    output.write(newline);
  }

  #hold(): void {
    const { input, output } = this.#options;
    if (output.writableLength <= bufferBytesMax) return;
    input.pause();
    output.once('drain', () => input.resume());
  }
}

const isResponse = ({ kind }: UpstreamMessage): boolean => kind === 'result' || kind === 'error';

/** On stdio the end of a listen is followed by this (2026-07-28, Cancellation). */
const ended = (id: string): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`);

const lost = ({ status, broken }: Received): RpcError => {
  const why = broken === undefined ? `HTTP ${status}` : broken.message;
  const message = `The gateway gave no answer (${why}); the call may or may not have run`;
  return new RpcError(own.upstreamLost, message, { cause: broken });
};

/** The headers that mirror a request (2026-07-28, "Standard Request Headers"). */
function modernHeaders(request: RequestMessage, params: readonly string[]): Record<string, string> {
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
