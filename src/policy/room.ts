/** Which limit of a server is shared by whom. */
import { createHash } from 'node:crypto';
import type { ServerConfig } from '../config/config.ts';
import { type Allowances, type Places, WholeAllowance } from './allowance.ts';

export interface Room {
  /** The limit's name. */
  readonly what: string;
  /** Whose limit it is: the server's, or that of one context at it. */
  readonly whose: string;
  readonly max: number;
  /** Told when those who wait may try again. */
  more?(): void;
}

/** A part of the limit of a server at a URL; all of it for any other, which runs in one place, where it is bounded. */
export function roomAt(
  { target }: ServerConfig,
  { what, whose, max, more }: Room,
  allowances: Allowances,
): Places {
  if (target.kind !== 'http') return new WholeAllowance(max);
  // Another server under the same name does not wait for what is at the one before.
  const digest = createHash('sha256').update(JSON.stringify(target)).digest('base64url').slice(0, 12);
  return allowances.of(`${what} ${whose} ${digest}`, max, more);
}
