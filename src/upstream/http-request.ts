/** One HTTP request to an upstream: redirects, the resend of what was never sent, and what a failure means. */
import { ChannelError } from './channel.ts';
import { DecodedBody, isKnownCoding } from './http-decode.ts';
import type { HttpPool } from './http-pool.ts';
import {
  type Body,
  type ChannelContext,
  type Flow,
  type Head,
  headerOf,
  nobody,
  type Receiver,
  type ResponseHeaders,
  shown,
} from './http-response.ts';
import type { HttpConnection, WireReader } from './http1-connection.ts';
import { HttpFault, type ResponseHead } from './http1-head.ts';
import type { ReadBuffers } from './read-buffers.ts';

/** Where an upstream is. */
export interface Place {
  readonly origin: string;
  /** The path and query of the configuration. */
  readonly home: string;
  /** Where requests go: `home`, or where a redirect led. */
  path: string;
}

export interface HttpRequestOptions {
  readonly pool: Pick<HttpPool, 'send'>;
  readonly place: Place;
  readonly context: Pick<ChannelContext, 'name' | 'log'>;
  readonly method: 'POST' | 'GET' | 'DELETE';
  /** Whole lines, each with its line end. */
  readonly headers: string;
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
export class HttpRequest implements WireReader, Flow {
  readonly #options: HttpRequestOptions;
  readonly #receiver: Receiver;
  #content: Buffer | null;
  #connection: HttpConnection | undefined;
  #isSent = false;
  #body: Body | undefined;
  #decoded: DecodedBody | undefined;
  #next: string | undefined;
  #nextBytes = 0;
  #redirects = 0;
  #resends = 0;
  #aborted = false;

  constructor(options: HttpRequestOptions, receiver: Receiver) {
    this.#options = options;
    this.#receiver = receiver;
    this.#content = options.body;
  }

  /** Whether the upstream may have seen it. */
  get sent(): boolean {
    return this.#isSent;
  }

  send(): void {
    if (this.#aborted) return;
    const { pool, place, method, headers, silenceMs } = this.#options;
    this.#isSent = false;
    this.#connection = pool.send({ method, path: place.path, headers, body: this.#content, silenceMs }, this);
  }

  pause(): void {
    this.#connection?.pause(this);
  }

  resume(): void {
    if (!this.#aborted) this.#connection?.resume(this);
  }

  abort(): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#content = null;
    this.#decoded?.stop();
    this.#body?.drop?.();
    this.#connection?.abandon(this);
  }

  distrust(): void {
    this.#connection?.destroy();
  }

  widen(): void {
    this.#connection?.widen(this);
  }

  memory(): ReadBuffers | undefined {
    return this.#connection?.memory;
  }

  kept(chunk: Buffer): Buffer {
    return this.#connection?.owns(chunk) === true ? chunk : Buffer.from(chunk);
  }

  sending(): void {
    this.#isSent = true;
  }

  head(head: ResponseHead): void {
    try {
      if (!this.#aborted) this.#start(head);
    } catch (error) {
      this.#report(error);
    }
  }

  data(chunk: Buffer): void {
    try {
      if (this.#aborted) return;
      if (this.#body === undefined) this.#skip(chunk);
      else this.#body.data(this.#body.borrows === true ? chunk : Buffer.from(chunk));
    } catch (error) {
      this.#report(error);
    }
  }

  end(): void {
    try {
      if (this.#aborted) return;
      if (this.#body === undefined) this.#redirect();
      else this.#body.end();
    } catch (error) {
      this.#report(error);
    }
  }

  lost(error: Error, isUnwritten: boolean): void {
    try {
      if (!this.#aborted) this.#lose(error, isUnwritten);
    } catch (bug) {
      this.#report(bug);
    }
  }

  #start(head: Head): void {
    const { place } = this.#options;
    const { status, headers } = head;
    this.#next = this.#redirects < redirectsMax ? redirectOf(place, status, headers) : undefined;
    if (this.#next !== undefined) return;
    // Where a redirect led may be gone; the next request asks the way again.
    if (status === 404) place.path = place.home;
    this.#content = null;
    this.#body = this.#open(head);
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

  #lose(error: Error, isUnwritten: boolean): void {
    if (this.#body !== undefined) {
      this.#body.fail(lostError('inside', true, error));
      return;
    }
    const isRefused =
      isUnwritten || (this.#next === undefined && 'syscall' in error && error.syscall === 'write');
    if (isRefused && this.#resends < resendsMax) {
      this.#resends += 1;
      // In the next turn, when it is known which other connections died with this one.
      setImmediate(() => this.send());
      return;
    }
    this.#receiver.fail(this.#isSent ? lostError('before', !isRefused, error) : unsentError(error));
  }

  /** What a receiver throws ends its own request, and no other that the connection's events may be about. */
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
  return code === '' ? shown(error.message) : code;
}

const unsentError = (error: Error): ChannelError =>
  new ChannelError('unreachable', `no connection (${reasonOf(error)})`, { sent: false, cause: error });

function lostError(when: 'before' | 'inside', sent: boolean, error: Error): ChannelError {
  const options = { sent, cause: error };
  return error instanceof HttpFault
    ? new ChannelError('broken', `it does not answer in valid HTTP (${error.message})`, options)
    : new ChannelError('lost', `the connection was lost ${when} the answer (${reasonOf(error)})`, options);
}
