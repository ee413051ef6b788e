/** Where a process stands among those that serve one address together; alone, where there is one. */
import { type Allowances, wholeAllowances } from './policy/allowance.ts';

/** How the owner of the children is reached. */
interface OwnerAddress {
  /** The path of a Unix socket. */
  readonly socket: string;
  /** Proves that whoever connects was let in. */
  readonly token: string;
}

/** The others that serve the same address. */
interface Peers {
  readonly names: readonly string[];
  /** The path of the private socket of one of them. */
  socketOf(name: string): string;
  /** The path of this one's own. */
  readonly socket: string;
  readonly token: string;
}

export interface Seat {
  /** Part of the ids that are handed out, so that each process knows its own. */
  readonly name: string;
  /** How children are reached that another process runs; undefined where this one runs them itself. */
  readonly owner?: OwnerAddress;
  /** Undefined where it is alone. */
  readonly peers?: Peers;
  /** Its parts of the limits that are shared. */
  readonly allowances: Allowances;
}

/** One process that serves alone. */
export const aloneSeat: Seat = { name: 'r0', allowances: wholeAllowances };
