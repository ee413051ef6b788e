/** Relays one client on stdin and stdout to a gateway that runs elsewhere, in whichever era each message is of. */
import type { Readable, Writable } from 'node:stream';
import type { Log } from '../observe/log.ts';
import { scanUpstream } from '../protocol/answer.ts';
import { eraOf } from '../protocol/era.ts';
import { code, errorMessage, own, RpcError } from '../protocol/errors.ts';
import { textOf } from '../protocol/json.ts';
import { LineSplitter, trimmed } from '../protocol/lines.ts';
import { type InboundMessage, idOf, paramOf, type RequestMessage, scanInbound } from '../protocol/message.ts';
import { onOneLine } from '../protocol/splice.ts';
import { failureOf, isResponse, lost, refusalMessage, scan } from './relay-answer.ts';
import { RelayModern } from './relay-modern.ts';
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
const newline = Buffer.from('\n');
/** Of a batch, whose requests are not looked at. */
const batchKey = '[]';

const cutError = (): RpcError =>
  new RpcError(
    own.upstreamLost,
    'This relay was stopped or restarted during the call; the call may or may not have run',
  );

/** What a request waits for. */
interface Open {
  readonly abort: AbortController;
  readonly era: 'modern' | 'legacy';
}

export class Relay {
  /** Resolves when the client has closed its end of either stream. */
  readonly ended: Promise<void>;
  readonly #options: RelayOptions;
  readonly #session: RelaySession;
  readonly #modern: RelayModern;
  readonly #closing = new AbortController();
  /** By the id as written; a batch has a key of its own. */
  readonly #open = new Map<string, Open>();
  #idle: (() => void) | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    const { url, key, input, output } = options;
    const headers: Readonly<Record<string, string>> =
      key === undefined ? {} : { authorization: `Bearer ${key}` };
    const write = (message: Buffer): void => this.#write(message);
    this.#modern = new RelayModern({ url, headers, write });
    this.#session = new RelaySession({
      url,
      headers,
      signal: this.#closing.signal,
      tell: write,
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

  /** Lets what is open end within `drainMs`, then tells of the rest that it was cut off, and ends it and the session. */
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
    for (const key of this.#open.keys()) if (key !== batchKey) this.#fail(Buffer.from(key), cutError());
    this.#closing.abort();
    for (const { abort } of this.#open.values()) abort.abort();
    await this.#session.end();
  }

  #line(line: Buffer): void {
    const inbound = scanInbound(line, scan.said);
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
        void this.#track(batchKey, 'legacy', undefined, ({ isOpen }) =>
          this.#postAwaited(line, undefined, isOpen),
        );
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
    void this.#track(key, era, id, ({ signal, isOpen }) => {
      if (era === 'modern') return this.#modern.send(request, signal);
      this.#remember(request, line);
      return method === 'initialize' ? this.#begin(line, id) : this.#postAwaited(line, id, isOpen);
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
    run: (request: { readonly signal: AbortSignal; isOpen(): boolean }) => Promise<void>,
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
    const isOpen = (): boolean => this.#open.get(key) === open;
    try {
      await run({ signal: open.abort.signal, isOpen });
    } catch (error) {
      if (isOpen()) this.#fail(id, failureOf(error, this.#options.log));
    }
    if (isOpen()) this.#open.delete(key);
    if (this.#open.size === 0) this.#idle?.();
  }

  /** What a session has to be told again when it is begun again. */
  #remember(request: RequestMessage, line: Buffer): void {
    const uri = textOf(request.bytes, paramOf(request, 'uri'));
    switch (request.method) {
      case 'logging/setLevel':
        this.#session.remember('level', line);
        break;
      case 'resources/subscribe':
        this.#session.remember(`uri ${uri}`, line);
        break;
      case 'resources/unsubscribe':
        this.#session.remember(`uri ${uri}`, undefined);
        break;
      default:
    }
  }

  async #begin(body: Buffer, id: Buffer): Promise<void> {
    let isAnswered = false;
    const tell = (message: Buffer): void => {
      isAnswered = true;
      this.#write(message);
    };
    const received = await this.#session.begin(body, tell);
    if (received.refusal !== undefined) tell(refusalMessage(received.status, received.refusal, id));
    else if (!isAnswered) throw lost(received);
  }

  /** A request of the legacy era, or a batch. */
  async #postAwaited(body: Buffer, id: Buffer | undefined, isOpen: () => boolean): Promise<void> {
    let isAnswered = false;
    const tell = (message: Buffer): void => {
      const scanned = scanUpstream(message, scan.told);
      isAnswered ||= isResponse(scanned) || id === undefined;
      // The answer to what was cancelled is for nobody.
      if (isResponse(scanned) && !isOpen()) return;
      this.#write(message);
    };
    const received = await this.#session.post(body, () => isAnswered, tell);
    if (received.refusal !== undefined) tell(refusalMessage(received.status, received.refusal, id));
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
