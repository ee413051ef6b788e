/** One connection to an HTTP/1.1 server, which carries one request at a time. */
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls, TLSSocket } from 'node:tls';
import type { TurnEnd, Waiting } from '../protocol/turn.ts';
import { type HeadReader, HttpFault, type ResponseHead } from './http1-head.ts';
import { ResponseReader, type ResponseSink } from './http1-reader.ts';
import { type ReadBuffers, wideBytes } from './read-buffers.ts';

export interface WireRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  /** Whole lines, each with its line end. */
  readonly headers: string;
  readonly body: Buffer | null;
  /** How long to wait for the head, and between two pieces of the body; 0 for no end. */
  readonly silenceMs: number;
}

/** Who takes the answer to one request: `head`, any `data`, then exactly one of `end` and `lost`, unless it is given up. */
export interface WireReader {
  /** The request is written from now on; without this, nothing of it was. */
  sending(): void;
  head(head: ResponseHead): void;
  /** The bytes are others' once this returns, or with the next `resume` where `owns` says so and this pauses. */
  data(chunk: Buffer): void;
  end(): void;
  /** An HttpFault where what came is no HTTP, else what happened to the connection; `isUnwritten` where it had been open and nothing was written. */
  lost(error: Error, isUnwritten: boolean): void;
}

export interface ConnectionTarget {
  readonly url: URL;
  readonly connectTimeoutMs: number;
  /** Where bytes are read to: whoever keeps some of them copies them. */
  readonly readBuffer: Buffer;
  /** Where long answers are read to, and those that are held are copied. */
  readonly wideBuffers: ReadBuffers;
  readonly heads: HeadReader;
  /** Of the last connection over TLS. */
  session: Buffer | undefined;
}

/** Who owns a connection. */
export interface ConnectionEnds {
  /** Where requests wait for others of the same turn. */
  readonly turn: TurnEnd;
  /** It may carry another request. */
  idle(connection: HttpConnection, keptMs: number | undefined): void;
  gone(connection: HttpConnection): void;
}

/** Up to here one text for head and body is cheaper than two writes. */
const joinBytesMax = 16_384;
/** How long a silent connection is left before the kernel asks whether the other side is still there. */
const aliveMs = 60_000;

export class HttpConnection implements ResponseSink, Waiting {
  readonly #ends: ConnectionEnds;
  readonly #target: ConnectionTarget;
  readonly #socket: Socket;
  readonly #response: ResponseReader;
  #reader: WireReader | undefined;
  #waiting: WireRequest | undefined;
  #timer: NodeJS.Timeout | undefined;
  #silence: NodeJS.Timeout | undefined;
  #isOpen = false;
  #isPaused = false;
  /** The other side has ended it before its reader took all that came. */
  #hasEnded = false;
  #isKept = false;
  #isLong = false;
  #keptMs: number | undefined;
  /** What came while its reader wanted nothing. */
  #unread: Buffer | undefined;
  /** Where it reads to while an answer passes that is too long to hold. */
  #wide: Buffer | undefined;
  /** What was that, and is read to until the socket asks for its next memory. */
  #spent: Buffer | undefined;
  #error: Error | undefined;
  /** When it became idle, by its owner's clock. */
  idleSinceMs = 0;
  /** How long it may be idle. */
  idleMaxMs = 0;

  constructor(target: ConnectionTarget, ends: ConnectionEnds) {
    this.#ends = ends;
    this.#target = target;
    this.#response = new ResponseReader(this, target.heads);
    this.#socket = this.#connect(target);
    this.#timer = setTimeout(
      () => this.#socket.destroy(new Error('connecting took too long')),
      target.connectTimeoutMs,
    );
    this.#socket.on('error', (error) => {
      this.#error ??= error;
    });
    this.#socket.on('end', () => this.#ended());
    this.#socket.on('close', () => this.#closed());
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Whether nothing has ended it yet; it is told as gone only some turns of the event loop after that. */
  get isAlive(): boolean {
    return !this.#socket.destroyed;
  }

  /** Sends a request, once connected, at once or with others at the end of the turn; only where the connection is new or idle. */
  carry(request: WireRequest, reader: WireReader, isAlone: boolean): void {
    this.#reader = reader;
    this.#isPaused = false;
    this.#waiting = request;
    if (!this.#isOpen) return;
    if (isAlone) this.flush();
    else this.#ends.turn.add(this);
  }

  /** Writes the request that waits, unless the connection has died meanwhile. */
  flush(): void {
    if (this.#socket.destroyed) return;
    const request = this.#waiting;
    this.#waiting = undefined;
    if (request !== undefined && this.#reader !== undefined) this.#write(request);
  }

  /** Lets nothing more come, where the request is still this reader's. */
  pause(reader: WireReader): void {
    if (reader !== this.#reader || this.#isPaused) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(reader: WireReader): void {
    if (reader !== this.#reader || !this.#isPaused) return;
    this.#isPaused = false;
    const unread = this.#unread;
    this.#unread = undefined;
    if (unread !== undefined) this.#read(unread);
    if (this.#isPaused) return;
    if (this.#hasEnded) this.#ended();
    else if (!this.#socket.destroyed) this.#socket.resume();
  }

  /** Reads into memory of this reader's answer alone from the next read on, where the request is still this reader's. */
  widen(reader: WireReader): void {
    if (reader !== this.#reader || this.#socket instanceof TLSSocket) return;
    this.#wide ??= this.#target.wideBuffers.take(wideBytes);
  }

  /** Memory for answers that are held, to be given back once nobody reads it. */
  get memory(): ReadBuffers {
    return this.#target.wideBuffers;
  }

  /** Whether nothing is read to where these bytes are before the next `resume`. */
  owns(chunk: Buffer): boolean {
    return this.#socket instanceof TLSSocket || chunk.buffer === this.#wide?.buffer;
  }

  /** Ends it, where its request is still this reader's, who hears nothing more. */
  abandon(reader: WireReader): void {
    if (reader !== this.#reader) return;
    this.#reader = undefined;
    this.#waiting = undefined;
    this.destroy();
  }

  /** Ends it; a request on it is lost. */
  destroy(error?: Error): void {
    this.#socket.destroy(error);
    if (this.#hasEnded) this.#fail(error ?? new Error('other side closed'));
  }

  head(head: ResponseHead): void {
    // A long request that was refused may not have been read, and what is left of it would come before the next.
    const isRead = !this.#isLong || head.status < 300;
    this.#isKept = head.isKept && head.framing.kind !== 'close' && isRead;
    this.#keptMs = head.keptMs;
    this.#reader?.head(head);
  }

  data(chunk: Buffer): void {
    this.#reader?.data(chunk);
  }

  /** Its answer is whole. */
  end(): void {
    const reader = this.#reader;
    this.#reader = undefined;
    this.#hush();
    this.#spent ??= this.#wide;
    this.#wide = undefined;
    // An answer that comes before the request was written whole leaves a connection that nobody else can use.
    if (!this.#isKept || this.#socket.writableLength > 0) this.#socket.destroy();
    reader?.end();
  }

  #connect({ url, readBuffer, ...target }: ConnectionTarget): Socket {
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const isTls = url.protocol === 'https:';
    const port = Number(url.port) || (isTls ? 443 : 80);
    const common = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: aliveMs };
    if (!isTls) {
      const buffer = (): Buffer => {
        if (this.#spent !== undefined) target.wideBuffers.give(this.#spent);
        this.#spent = undefined;
        return this.#wide ?? readBuffer;
      };
      const callback = (bytes: number, read: Uint8Array): boolean => this.#read(read as Buffer, bytes);
      const socket = connectPlain({ ...common, onread: { buffer, callback } });
      return socket.on('connect', () => this.#opened());
    }
    const { session } = target;
    const socket = connectTls({
      ...common,
      servername: isIP(host) === 0 ? host : '',
      ALPNProtocols: ['http/1.1'],
      ...(session === undefined ? {} : { session }),
    });
    socket.on('session', (fresh) => {
      target.session = fresh;
    });
    socket.on('data', (chunk) => this.#read(chunk));
    return socket.on('secureConnect', () => this.#opened());
  }

  #opened(): void {
    clearTimeout(this.#timer);
    this.#isOpen = true;
    this.flush();
  }

  #write({ method, path, headers, body, silenceMs }: WireRequest): void {
    this.#response.expect();
    this.#reader?.sending();
    if (silenceMs > 0)
      this.#silence = setTimeout(
        () => this.destroy(new Error(`nothing came for ${silenceMs} ms`)),
        silenceMs,
      );
    this.#isLong = body !== null && body.length > joinBytesMax;
    const line = `${method} ${path} HTTP/1.1\r\n${headers}`;
    if (body === null) this.#socket.write(`${line}\r\n`, 'latin1');
    else if (body.length <= joinBytesMax)
      this.#socket.write(`${line}content-length: ${body.length}\r\n\r\n${body.toString('latin1')}`, 'latin1');
    else {
      this.#socket.cork();
      this.#socket.write(`${line}content-length: ${body.length}\r\n\r\n`, 'latin1');
      this.#socket.write(body);
      this.#socket.uncork();
    }
  }

  /** What came are the first `length` bytes; whether more is wanted now. */
  #read(buffer: Buffer, length = buffer.length): boolean {
    if (this.#socket.destroyed && !this.#hasEnded) return false;
    if (this.#isPaused) {
      const chunk = buffer.subarray(0, length);
      this.#unread = Buffer.concat(this.#unread === undefined ? [chunk] : [this.#unread, chunk]);
      return false;
    }
    this.#silence?.refresh();
    try {
      this.#take(buffer, length);
    } catch (error) {
      if (!(error instanceof HttpFault)) throw error;
      this.#fail(error);
    }
    return !this.#isPaused;
  }

  #take(buffer: Buffer, length: number): void {
    const taken = this.#response.push(buffer, length);
    if (this.#isPaused) {
      this.#unread = Buffer.from(buffer.subarray(taken, length));
      return;
    }
    if (!this.#response.isOver || this.#socket.destroyed || this.#hasEnded) return;
    // What nobody asked for can belong to no request.
    if (taken < length) this.#socket.destroy();
    else if (this.#reader === undefined) this.#ends.idle(this, this.#keptMs);
  }

  #ended(): void {
    // Over TLS the end comes to whoever wants nothing, too.
    if (this.#isPaused && this.#reader !== undefined) {
      this.#hasEnded = true;
      return;
    }
    if (this.#reader !== undefined && this.#response.eof()) this.#read(Buffer.alloc(0));
    this.destroy();
  }

  #closed(): void {
    clearTimeout(this.#timer);
    this.#ends.gone(this);
    if (this.#hasEnded && this.#isPaused) return;
    this.#fail(this.#error ?? new Error('other side closed'));
  }

  #fail(error: Error): void {
    this.#hush();
    const reader = this.#reader;
    const isUnwritten = this.#isOpen && this.#waiting !== undefined;
    this.#reader = undefined;
    this.#waiting = undefined;
    // Somebody may still write out what is in it.
    this.#wide = undefined;
    this.#socket.destroy();
    reader?.lost(error, isUnwritten);
  }

  #hush(): void {
    if (this.#silence === undefined) return;
    clearTimeout(this.#silence);
    this.#silence = undefined;
  }
}
