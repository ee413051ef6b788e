/** Looks after an upstream that nobody calls: whether it still answers, and whether it has been idle for so long that it may be stopped. */
import type { Connection } from './connection.ts';
import { blames } from './failure.ts';

export interface PulseOptions {
  readonly probe: { readonly intervalMs: number; readonly timeoutMs: number };
  /** Absent where it is kept however idle it is. */
  readonly idleMs: number | undefined;
  readonly now: () => number;
  /** It was asked twice and did not answer, and no call is in flight. */
  dead(error: Error): void;
  /** Nobody has called it for `idleMs`, and nothing is open. */
  idle(): void;
}

/** A child that was asked twice and gave no sign of life. */
export class Unresponsive extends Error {
  constructor(cause: Error) {
    super('it does not answer, though nothing is in flight', { cause });
    this.name = 'Unresponsive';
  }
}

const looksPerIdle = 4;
const lookMinMs = 20;

/** Any JSON-RPC answer, an error too, proves that there is somebody; so does an HTTP status below 500. */
async function silence(connection: Connection, timeoutMs: number): Promise<Error | undefined> {
  const method = connection.dialect.era === 'modern' ? 'server/discover' : 'ping';
  try {
    await connection.ask(method, {}, timeoutMs);
    return undefined;
  } catch (error) {
    return blames(error) ? (error as Error) : undefined;
  }
}

/** Begins to look; the returned function ends that. */
export function keepPulse(connection: Connection, options: PulseOptions): () => void {
  const { probe, idleMs, now } = options;
  let isOver = false;
  let isProbing = false;
  let sent = connection.callsSent;
  let usedMs = now();
  const isUsed = (): boolean => {
    if (connection.callsInFlight === 0 && connection.callsSent === sent) return false;
    sent = connection.callsSent;
    usedMs = now();
    return true;
  };
  const look = async (): Promise<void> => {
    if (isProbing || connection.callsInFlight > 0) return;
    isProbing = true;
    const before = connection.callsSent;
    // One answer may be late for many reasons, and what is ended for it loses its state.
    const error =
      (await silence(connection, probe.timeoutMs)) && (await silence(connection, probe.timeoutMs));
    isProbing = false;
    const isBusy = connection.callsInFlight > 0 || connection.callsSent !== before;
    if (!isOver && !isBusy && error !== undefined) options.dead(error);
  };
  const health = setInterval(() => void look(), probe.intervalMs).unref();
  const idle =
    idleMs === undefined
      ? undefined
      : setInterval(
          () => {
            if (isUsed() || isProbing || connection.asksInFlight > 0) return;
            if (now() - usedMs >= idleMs) options.idle();
          },
          Math.max(lookMinMs, idleMs / looksPerIdle),
        ).unref();
  return () => {
    isOver = true;
    clearInterval(health);
    clearInterval(idle);
  };
}
