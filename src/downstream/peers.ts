/** The other processes that serve the same address: whose an id or a state is, and what is told to them. */
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { News } from '../gateway/news.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Caller } from '../protocol/call.ts';
import { errorMessage, own, RpcError } from '../protocol/errors.ts';
import { misdirected, PeerLines, peerPath } from './peer-lines.ts';
import { answer } from './refuse.ts';
import type { Session } from './session.ts';

export interface PeersOptions {
  /** This one's. */
  readonly name: string;
  /** Those of all, or of all others. */
  readonly names: readonly string[];
  /** The path of the private socket of one. */
  socketOf(name: string): string;
  /** Proves to them that a request was let in by one of them. */
  readonly token: string;
  readonly metrics: Pick<Metrics, 'limitHit'>;
}

/** A request that goes on as it came. */
export interface Onward {
  readonly to: string;
  /** Of the private socket. */
  readonly path: string;
  readonly caller: Caller;
  /** Whole, where it was read already. */
  readonly body?: Buffer;
  /** The other is not there, or has not what this is about; nothing was sent to the client. */
  absent(): void;
}

/** What another said to a message. */
export interface Heard {
  readonly status: number;
  readonly body: Buffer;
}

interface Message {
  readonly method: 'POST' | 'DELETE';
  readonly session: Session;
  readonly body?: Buffer;
}

interface Said {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer | undefined;
}

interface Forward {
  readonly res: ServerResponse;
  readonly out: ClientRequest;
  /** A stream that lasts until somebody ends it. */
  readonly isStream: boolean;
}

/** Streams of sessions among them, as many as there may be connections. */
const forwardsMax = 30_000;
const messagesMax = 1_000;
/** Of all that is being sent. */
const bytesMax = 64 * 1024 ** 2;
const heardBytesMax = 1024 ** 2;
/** An answer begins after 15 s of silence at the latest. */
const headMs = 30_000;
/** For what everybody is told; who does not hear it by then, is gone or hangs. */
const tellMs = 5_000;

/** Clients wait for it who are about to hear that a list changed. */
const newsMs = 1_000;

const nobody: Caller = { name: '' };
const separator = '.';

/** What of a request the edges read. */
const isRead = (name: string): boolean =>
  name.startsWith('mcp-') || name === 'content-type' || name === 'last-event-id';

/** What belongs to one connection, or is said anew. */
const ofHop = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date']);

function headersOnward(rawHeaders: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (!ofHop.has(name.toLowerCase())) kept.push(name, rawHeaders[at + 1] ?? '');
  }
  return kept;
}

export class Peers {
  readonly #options: PeersOptions;
  readonly #others: ReadonlySet<string>;
  /** Where a session lives whose home is not known. */
  readonly #first: string;
  readonly #lines: PeerLines;
  readonly #forwards = new Set<Forward>();
  readonly #settled: (() => void)[] = [];
  #messages = 0;
  #bytes = 0;

  constructor(options: PeersOptions) {
    const { name, names } = options;
    const all = [...new Set([name, ...names])].toSorted();
    this.#options = options;
    this.#others = new Set(all.filter((one) => one !== name));
    this.#first = all[0] ?? name;
    this.#lines = new PeerLines(options.token);
  }

  /** The other whose id or state this is; undefined where it is this one's, or nobody's. */
  ownerOf(text: string): string | undefined {
    const end = text.indexOf(separator);
    if (end < 0) return undefined;
    const name = text.slice(0, end);
    return this.#others.has(name) ? name : undefined;
  }

  /** The other that is the home of a session; undefined where that is this one. */
  homeOf({ facts: { home } }: Session): string | undefined {
    if (home !== undefined && this.#others.has(home)) return home;
    // Of before there were several, or of one that is no more: all have to agree.
    return home === this.#options.name || this.#first === this.#options.name ? undefined : this.#first;
  }

  /** Sends a request on to another, whose answer is the client's; its abort is passed on too. */
  forward(req: IncomingMessage, res: ServerResponse, onward: Onward): void {
    const { to, path, caller, body, absent } = onward;
    const bytes = body?.length ?? 0;
    if (this.#forwards.size >= forwardsMax || this.#bytes + bytes > bytesMax) {
      this.#options.metrics.limitHit('forwards');
      const error = new RpcError(own.overLimit, 'Too much is sent on to other processes; try again later');
      answer(res, 503, errorMessage(undefined, error));
      return;
    }
    const headers: Record<string, string | string[] | number> = this.#lines.headersOf(caller);
    for (const [name, value] of Object.entries(req.headers))
      if (isRead(name) && value !== undefined) headers[name] = value;
    headers['content-length'] = bytes;
    const { method } = req;
    const out = request({ ...this.#lines.to(this.#options.socketOf(to)), method, path, headers });
    const forward = { res, out, isStream: method === 'GET' };
    this.#forwards.add(forward);
    this.#bytes += bytes;
    let isOver = false;
    const over = (): boolean => {
      if (isOver) return false;
      isOver = true;
      clearTimeout(timer);
      this.#bytes -= bytes;
      this.#forget(forward);
      return true;
    };
    const timer = setTimeout(() => out.destroy(new Error('no answer')), headMs);
    out.on('response', (incoming) => {
      clearTimeout(timer);
      if (incoming.statusCode === misdirected) {
        incoming.resume();
        if (over()) absent();
      } else passOn(incoming, res);
    });
    // Once the answer has begun, its end says it.
    out.on('error', () => {
      if (over() && !res.headersSent) absent();
    });
    out.on('close', () => {
      if (over() && !res.headersSent) res.destroy();
    });
    res.on('close', () => {
      over();
      if (!res.writableFinished) out.destroy();
    });
    out.end(body);
  }

  /** Tells all others something of a session; resolves when they have heard it, or will not. */
  async tell(message: Message): Promise<void> {
    await Promise.all([...this.#others].map((name) => this.ask(name, message, tellMs)));
  }

  /** Tells one other, and resolves with what it says; undefined where it is not there. */
  ask(to: string, { method, session, body }: Message, ms = headMs): Promise<Heard | undefined> {
    const headers = {
      ...this.#lines.headersOf({ name: session.facts.caller }),
      'mcp-session-id': session.id,
    };
    return this.#say(to, { method, path: peerPath.session, headers, body }, ms);
  }

  /** Tells all others what servers told; resolves when they have heard it, or will not. */
  async spread(news: News): Promise<void> {
    const body = Buffer.from(JSON.stringify(news));
    const said = { method: 'POST', path: peerPath.news, headers: this.#lines.headersOf(nobody), body };
    await Promise.all([...this.#others].map((name) => this.#say(name, said, newsMs)));
  }

  #say(to: string, { method, path, headers, body }: Said, ms: number): Promise<Heard | undefined> {
    const bytes = body?.length ?? 0;
    if (this.#messages >= messagesMax || this.#bytes + bytes > bytesMax) {
      this.#options.metrics.limitHit('forwards');
      return Promise.resolve(undefined);
    }
    this.#messages += 1;
    this.#bytes += bytes;
    const out = request({
      ...this.#lines.to(this.#options.socketOf(to)),
      method,
      path,
      headers: { ...headers, 'content-type': 'application/json', 'content-length': bytes },
    });
    const timer = setTimeout(() => out.destroy(new Error('no answer')), ms);
    const heard = new Promise<Heard | undefined>((resolve) => {
      out.on('response', (incoming) => readHeard(incoming, resolve));
      out.on('error', () => resolve(undefined));
      out.on('close', () => resolve(undefined));
    });
    out.end(body);
    return heard.finally(() => {
      clearTimeout(timer);
      this.#messages -= 1;
      this.#bytes -= bytes;
    });
  }

  /** Resolves when no call is under way to another, at the latest after `ms`. */
  async settle(ms: number): Promise<void> {
    if (this.#isSettled()) return;
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([
      new Promise<void>((resolve) => {
        this.#settled.push(resolve);
      }),
      new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms);
      }),
    ]);
    clearTimeout(timer);
  }

  /** Ends all streams, and cuts what else is under way. */
  stop(): void {
    for (const { res, out, isStream } of [...this.#forwards]) {
      if (isStream && res.headersSent) res.end();
      else res.destroy();
      out.destroy();
    }
    this.#lines.close();
  }

  #isSettled(): boolean {
    for (const { isStream } of this.#forwards) if (!isStream) return false;
    return true;
  }

  #forget(forward: Forward): void {
    this.#forwards.delete(forward);
    if (this.#settled.length > 0 && this.#isSettled())
      for (const resolve of this.#settled.splice(0)) resolve();
  }
}

/** An answer that breaks is never ended cleanly. */
function passOn(incoming: IncomingMessage, res: ServerResponse): void {
  res.writeHead(incoming.statusCode ?? 502, headersOnward(incoming.rawHeaders));
  if (incoming.headers['content-length'] === undefined) res.flushHeaders();
  incoming.on('error', () => res.destroy());
  incoming.on('close', () => {
    if (!incoming.complete) res.destroy();
  });
  incoming.pipe(res);
}

function readHeard(incoming: IncomingMessage, resolve: (heard: Heard | undefined) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  incoming.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > heardBytesMax) incoming.destroy();
    else chunks.push(chunk);
  });
  incoming.on('error', () => resolve(undefined));
  incoming.on('end', () => resolve({ status: incoming.statusCode ?? 502, body: Buffer.concat(chunks) }));
}
