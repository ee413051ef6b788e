/** The states of an upstream. */
import { own, RpcError } from '../protocol/errors.ts';
import type { Connection, Profile } from './connection.ts';
import { OwnerDown } from './owner-down.ts';

/** An upstream that answers. */
export interface Live {
  readonly connection: Connection;
  readonly profile: Profile;
}

/** Where it is in its life. */
export type UpstreamState =
  | { readonly kind: 'idle' }
  | {
      readonly kind: 'starting';
      readonly sinceMs: number;
      readonly done: Promise<void>;
      /** A call needs it, and waits for as long as a start may take. */
      readonly isWaking: boolean;
      /** Why it was down before this try. */
      readonly after: Error | undefined;
    }
  | { readonly kind: 'up'; readonly live: Live; readonly sinceMs: number }
  /** Stopped since nobody called it, until somebody does; its lists are as they were. */
  | { readonly kind: 'asleep'; readonly profile: Profile }
  | { readonly kind: 'down'; readonly error: Error; readonly nextTryMs: number }
  | { readonly kind: 'stopped' };

/** What was wrong when it was last tried; undefined where that is over, or it was never tried. */
export const troubleIn = (state: UpstreamState): Error | undefined =>
  state.kind === 'down' ? state.error : state.kind === 'starting' ? state.after : undefined;

/** Why nobody here can have it, as the process that runs it says. */
export const refusalIn = (state: UpstreamState): RpcError | undefined =>
  state.kind === 'down' && state.error instanceof OwnerDown ? state.error.refusal : undefined;

/** What a caller is told of an upstream that is not up: nothing was sent to it. */
export function notUp(name: string, state: UpstreamState, nowMs: number): RpcError {
  return (
    refusalIn(state) ??
    new RpcError(own.upstreamDown, `server \`${name}\` ${whyNotUp(state, nowMs)}; nothing was sent`)
  );
}

/** After its name. */
function whyNotUp(state: UpstreamState, nowMs: number): string {
  switch (state.kind) {
    case 'down': {
      const inS = Math.max(0, Math.ceil((state.nextTryMs - nowMs) / 1000));
      return `is down: ${state.error.message} (next try in ${inS} s)`;
    }
    case 'starting':
      return 'is still starting';
    case 'idle':
    case 'stopped':
    case 'asleep':
    case 'up':
      return 'is stopped';
    default:
      throw state satisfies never;
  }
}
