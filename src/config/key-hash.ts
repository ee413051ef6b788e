/** Keys of callers, and the hashes of them that a config holds instead. */
import { hash } from 'node:crypto';

/** What a caller may be named. */
export const callerNamePattern = /^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$/;

/** The name of everybody who needs no key. */
export const anonymous = 'anonymous';

const scheme = 'sha256:';
const keyBytes = 32;

/** A new key, `mcy_` and 32 random bytes in base64url. */
export const createKey = (random: (bytes: number) => Buffer): string =>
  `mcy_${random(keyBytes).toString('base64url')}`;

/** `sha256:` and 64 hexadecimal digits. */
export const hashOfKey = (key: string): string => scheme + hash('sha256', key, 'hex');

/** The digits of such a hash in lower case; undefined for anything else. */
export const digestOf = (text: string): string | undefined =>
  /^sha256:([0-9A-Fa-f]{64})$/.exec(text)?.[1]?.toLowerCase();
