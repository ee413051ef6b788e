/** One HTTP request to an upstream: redirects, the resend of what was never sent, and what a failure means. */
import type { Dispatcher } from 'undici';
import { ChannelError } from './channel.ts';
import { DecodedBody, isKnownCoding } from './http-decode.ts';
import {
  type Body,
  type ChannelContext,
  type Flow,
  type Head,
  headerOf,
  headOf,
  nobody,
  type Receiver,
  type ResponseHeaders,
  shown,
} from './http-response.ts';

/** Where an upstream is. */
export interface Place {
  readonly origin: string;
  /** The path and query of the configuration. */
  readonly home: string;
  /** Where requests go: `home`, or where a redirect led. */
  path: string;
}

export interface HttpRequestOptions {
  readonly dispatcher: Dispatcher;
  readonly place: Place;
  readonly context: Pick<ChannelContext, 'name' | 'log'>;
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly headers: string[];
  readonly body: Buffer | null;
  /** How long to wait for the head, and between two pieces of the body; 0 for no end. */
  readonly silenceMs: number;
}

const redirectsMax = 3;
const redirectBytesMax = 65_536;
/** A second attempt may meet another dead connection of the pool, which costs nothing either. */
const resendsMax = 2;

/**
 * Sends one request and hands its answer to a receiver.
 *
 * It is sent again only where a write failed, since then the kernel has refused its last bytes and no server can have
 * read it whole; a connection that is lost in any other way may have carried it, used before or not.
 */
export class HttpRequest implements Dispatcher.DispatchHandler, Flow {
  readonly #options: HttpRequestOptions;
  readonly #receiver: Receiver;
  #content: Buffer | null;
  #controller: Dispatcher.DispatchController | undefined;
  #body: Body | undefined;
  #decoded: DecodedBody | undefined;
  #next: string | undefined;
  #nextBytes = 0;
  #redirects = 0;
  #resends = 0;
  #paused = false;
  #aborted = false;

  constructor(options: HttpRequestOptions, receiver: Receiver) {
    this.#options = options;
    this.#receiver = receiver;
    this.#content = options.body;
  }

  /** Whether the upstream may have seen it. */
  get sent(): boolean {
    return this.#controller !== undefined;
  }

  send(): void {
    if (this.#aborted) return;
    const { dispatcher, place, method, headers, silenceMs } = this.#options;
    this.#controller = undefined;
    const request: Dispatcher.DispatchOptions = {
      origin: place.origin,
      path: place.path,
      method,
      headers,
      body: this.#content,
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
    };
    dispatcher.dispatch(request, this);
  }

  pause(): void {
    this.#paused = true;
    this.#controller?.pause();
  }

  resume(): void {
    this.#paused = false;
    // undici must not be resumed from inside its parser, whichever request that is busy with.
    process.nextTick(() => {
      if (!this.#paused && !this.#aborted) this.#controller?.resume();
    });
  }

  abort(): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#content = null;
    this.#decoded?.stop();
    this.#controller?.abort(new Error('The gateway has given this request up'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#aborted) controller.abort(new Error('The gateway has given this request up'));
    else this.#controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: ResponseHeaders,
  ): void {
    try {
      if (status >= 200 && !this.#aborted) this.#start(status, headers);
    } catch (error) {
      this.#report(error);
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    try {
      if (this.#aborted) return;
      if (this.#body === undefined) this.#skip(chunk);
      else this.#body.data(chunk);
    } catch (error) {
      this.#report(error);
    }
  }

  onResponseEnd(): void {
    try {
      if (this.#aborted) return;
      if (this.#body === undefined) this.#redirect();
      else this.#body.end();
    } catch (error) {
      this.#report(error);
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    try {
      if (!this.#aborted) this.#lose(error);
    } catch (bug) {
      this.#report(bug);
    }
  }

  #start(status: number, headers: ResponseHeaders): void {
    const { place } = this.#options;
    this.#next = this.#redirects < redirectsMax ? redirectOf(place, status, headers) : undefined;
    if (this.#next !== undefined) return;
    // Where a redirect led may be gone; the next request asks the way again.
    if (status === 404) place.path = place.home;
    this.#content = null;
    this.#body = this.#open(headOf(status, headers));
  }

  /** The body of a redirect. */
  #skip(chunk: Buffer): void {
    this.#nextBytes += chunk.length;
    if (this.#nextBytes <= redirectBytesMax) return;
    this.abort();
    const message = `it redirects with a body of more than ${redirectBytesMax} bytes`;
    this.#receiver.fail(new ChannelError('broken', message, { sent: true }));
  }

  #redirect(): void {
    if (this.#next === undefined) return;
    this.#options.place.path = this.#next;
    this.#redirects += 1;
    this.#next = undefined;
    this.#nextBytes = 0;
    this.send();
  }

  #lose(error: Error): void {
    if (this.#controller === undefined) {
      // undici may say this before `dispatch` returns, when the caller doesn't expect it yet.
      queueMicrotask(() => {
        if (!this.#aborted) this.#receiver.fail(unsentError(error));
      });
      return;
    }
    if (this.#body !== undefined) {
      this.#body.fail(lostError('inside', true, error));
      return;
    }
    const isUnsent = this.#next === undefined && 'syscall' in error && error.syscall === 'write';
    if (isUnsent && this.#resends < resendsMax) {
      this.#resends += 1;
      // In the next turn, when undici has seen which other connections died with this one.
      setImmediate(() => this.send());
      return;
    }
    this.#receiver.fail(lostError('before', !isUnsent, error));
  }

  /** undici would take what a receiver throws for a failure of the request, and say nothing. */
  #report(error: unknown): void {
    const { log, name } = this.#options.context;
    log.error({ err: error, upstream: name }, 'Bug: reading an answer failed');
    if (this.#aborted) return;
    this.abort();
    const failure = new ChannelError('broken', 'the gateway failed to read the answer', {
      sent: true,
      cause: error,
    });
    (this.#body ?? this.#receiver).fail(failure);
  }

  #open(head: Head): Body {
    const coding = headerOf(head.headers, 'content-encoding')?.trim().toLowerCase() ?? 'identity';
    if (coding === 'identity' || coding === '') return this.#receiver.start(head, this);
    if (!isKnownCoding(coding)) {
      const message = `it answered ${head.status} in the content coding ${shown(coding)}, which it was not asked for`;
      this.abort();
      this.#receiver.fail(new ChannelError('broken', message, { sent: true }));
      return nobody;
    }
    const decoded = new DecodedBody(coding, this);
    this.#decoded = decoded;
    decoded.pipe(this.#receiver.start({ ...head, bodyBytes: undefined }, decoded));
    return decoded;
  }
}

/** The path where a redirect leads that keeps method, body and origin (RFC 9110, 15.4.8 and 15.4.9). */
function redirectOf(place: Place, status: number, headers: ResponseHeaders): string | undefined {
  if (status !== 307 && status !== 308) return undefined;
  const location = headerOf(headers, 'location');
  const url = location === undefined ? undefined : urlOf(location, place);
  return url?.origin === place.origin ? url.pathname + url.search : undefined;
}

/** Where a `Location` leads, or undefined where it can't be read. */
function urlOf(location: string, place: Place): URL | undefined {
  return URL.canParse(location, place.origin + place.path)
    ? new URL(location, place.origin + place.path)
    : undefined;
}

const codeOf = (error: Error): string =>
  'code' in error && typeof error.code === 'string' ? error.code : '';

/** Why, without the addresses that the messages of Node.js show: those are for the log, not for clients. */
function reasonOf(error: Error): string {
  const code = codeOf(error);
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'connecting took too long';
  return code === '' || code.startsWith('UND_') ? shown(error.message) : code;
}

function unsentError(error: Error): ChannelError {
  const isOurs = ['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED'].includes(codeOf(error));
  const options = { sent: false, cause: error };
  return isOurs
    ? new ChannelError('broken', `no HTTP request can be made of this: ${reasonOf(error)}`, options)
    : new ChannelError('unreachable', `no connection (${reasonOf(error)})`, options);
}

function lostError(when: 'before' | 'inside', sent: boolean, error: Error): ChannelError {
  const options = { sent, cause: error };
  return isGibberish(when, error)
    ? new ChannelError('broken', `it does not answer in valid HTTP (${reasonOf(error)})`, options)
    : new ChannelError('lost', `the connection was lost ${when} the answer (${reasonOf(error)})`, options);
}

/** Whether what came is no HTTP, rather than HTTP that ends too early. */
function isGibberish(when: 'before' | 'inside', error: Error): boolean {
  const code = codeOf(error);
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return true;
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return when === 'before';
  return error.name === 'HTTPParserError' && !error.message.includes('Invalid EOF state');
}
