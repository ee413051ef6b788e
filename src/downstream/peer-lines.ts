/** The connections to the private sockets of others, and how each request on them says who let it in and for whom. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { Agent, type IncomingMessage } from 'node:http';
import type { Caller } from '../protocol/call.ts';
import { header } from './header.ts';

/** Both mean something on private sockets only, and are never taken over from a client's request. */
const tokenHeader = 'mcpyard-token';
const callerHeader = 'mcpyard-caller';

/** The paths of a private socket, beside that for the messages of HTTP+SSE. */
export const peerPath = {
  /** The own stream of a session, or one that is resumed. */
  stream: '/stream',
  /** One that is resumed, and nothing else. */
  resume: '/resume',
  /** A call of a modern client that takes up what waits there. */
  call: '/call',
  /** A message of a session, or its end. */
  session: '/session',
  /** What servers told, for clients that look to another process. */
  news: '/news',
} as const;

/** Whoever has not what is asked for, says so with this status (RFC 9110, "421 Misdirected Request"). */
export const misdirected = 421;

/** Connections to one other that wait for the next request. */
const idleSocketsMax = 16;

export class PeerLines {
  readonly #token: string;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: idleSocketsMax });

  constructor(token: string) {
    this.#token = token;
  }

  /** The options of a request to this path. */
  to(socketPath: string): { readonly socketPath: string; readonly agent: Agent } {
    return { socketPath, agent: this.#agent };
  }

  headersOf(caller: Caller): Record<string, string> {
    return {
      [tokenHeader]: this.#token,
      [callerHeader]: Buffer.from(JSON.stringify(caller)).toString('base64url'),
    };
  }

  close(): void {
    this.#agent.destroy();
  }
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();

const isCaller = (value: unknown): value is Caller =>
  typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string';

/** The caller of a request on a private socket; undefined where it was not sent by one who has the token. */
export function callerOnward(token: string): (req: IncomingMessage) => Caller | undefined {
  const expected = digestOf(token);
  return (req) => {
    // Digests have one length, so that the time tells nothing of the token.
    if (!timingSafeEqual(digestOf(header(req, tokenHeader) ?? ''), expected)) return undefined;
    const caller: unknown = JSON.parse(
      Buffer.from(header(req, callerHeader) ?? '', 'base64url').toString('utf8') || 'null',
    );
    return isCaller(caller) ? caller : undefined;
  };
}
