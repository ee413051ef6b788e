/** Who is calling: the bearer key of each request, and the one answer to whoever has no right key. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type AuthFailure, authorizationOf, bearerOf } from '../auth/bearer.ts';
import type { Keyring } from '../auth/keys.ts';
import { anonymous } from '../config/key-hash.ts';
import type { Caller } from '../protocol/call.ts';
import { kindOf } from './inbound-request.ts';
import { refuse } from './refuse.ts';

/** The caller of a request; undefined after it was answered with 401. */
export type Authenticate = (req: IncomingMessage, res: ServerResponse) => Caller | undefined;

export interface AuthenticateOptions {
  readonly keyring: Keyring;
  /** Counts and logs. */
  refused(req: IncomingMessage, reason: AuthFailure): void;
}

/** Who sent the last right key on a connection: it need not be read and hashed anew with each request. */
interface Admitted {
  /** The whole header. */
  readonly authorization: string;
  readonly caller: Caller;
}

const challenge = ['WWW-Authenticate', 'Bearer realm="mcpyard"'];

/** Lets everybody in, as one caller. */
export function admitAll(): Authenticate {
  const everybody: Caller = { name: anonymous };
  return () => everybody;
}

/** Lets in who sends a key of the ring. The answer to everybody else is the same, whatever is wrong. */
export function requireKey(options: AuthenticateOptions): Authenticate {
  const { keyring, refused } = options;
  const lastOf = new WeakMap<Socket, Admitted>();
  return (req, res) => {
    const authorization =
      kindOf(req) === undefined ? authorizationOf(req.rawHeaders) : req.headers.authorization;
    const last = lastOf.get(req.socket);
    if (last !== undefined && last.authorization === authorization) return last.caller;
    const presented = bearerOf(authorization);
    const caller = presented.kind === 'token' ? keyring.callerOf(presented.token) : undefined;
    if (typeof authorization === 'string' && caller !== undefined) {
      lastOf.set(req.socket, { authorization, caller });
      return caller;
    }
    refused(req, presented.kind === 'none' ? presented.failure : 'unknown');
    refuse(res, 401, 'A key is needed: send it as "Authorization: Bearer KEY"', challenge);
    return undefined;
  };
}
