/** Who may read what of the admin listener: health everybody, metrics and the status page as the config says. */
import type { IncomingMessage } from 'node:http';
import { type AuthFailure, authorizationOf, bearerOf } from '../auth/bearer.ts';
import { createKeyring } from '../auth/keys.ts';
import { isLoopback } from '../config/address.ts';
import type { Config } from '../config/config.ts';
import { hashOfKey } from '../config/key-hash.ts';

/** Whether a request may have what it asks for. */
export type Access = (req: IncomingMessage) => boolean;

export interface AdminAccess {
  /** `/metrics`: whoever sends the token, where there is one. */
  readonly metrics: Access;
  /** The status page: this machine, whoever sends the token or a key, and everybody where nobody needs a key. */
  readonly status: Access;
}

export type AccessSettings = Pick<Config, 'metrics' | 'keys' | 'auth'>;

type Hashes = Readonly<Record<string, string>>;

/** Told of each request without a right token. */
type Refused = (req: IncomingMessage, reason: AuthFailure) => void;

function opensWith(hashes: Hashes, refused: Refused): Access {
  const keyring = createKeyring(hashes);
  return (req) => {
    const presented = bearerOf(authorizationOf(req.rawHeaders));
    if (presented.kind === 'token' && keyring.callerOf(presented.token) !== undefined) return true;
    refused(req, presented.kind === 'none' ? presented.failure : 'unknown');
    return false;
  };
}

/** Straight from this machine: what a proxy on it passes on comes from anywhere. */
function isLocal({ socket, headers }: IncomingMessage): boolean {
  const peer = (socket.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
  return isLoopback(peer) && headers['x-forwarded-for'] === undefined && headers.forwarded === undefined;
}

/** `refused` counts and logs. */
export function createAdminAccess(
  { metrics: { token }, keys, auth }: AccessSettings,
  refused: Refused,
): AdminAccess {
  // No caller has an empty name.
  const tokens: Hashes = token === undefined ? {} : { '': hashOfKey(token) };
  const hasToken = opensWith(tokens, refused);
  const hasTokenOrKey = opensWith({ ...keys, ...tokens }, refused);
  return {
    metrics: token === undefined ? () => true : hasToken,
    status: (req) => (auth === 'none' && token === undefined) || isLocal(req) || hasTokenOrKey(req),
  };
}
