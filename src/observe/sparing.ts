/** Warnings that anybody outside can cause, at a rate that can't flood the log. */
import type { Log } from './log.ts';

export interface SparingLimits {
  readonly linesPerSecond: number;
  /** Lines that may come at once after a silence. */
  readonly burst: number;
  /** Milliseconds of a clock that never goes back. */
  now(): number;
}

/** Logs at `warn`; what is over the rate is dropped, and the next line says how many were in `dropped`. */
export function sparingWarn(log: Pick<Log, 'warn'>, limits: SparingLimits): Log['warn'] {
  const { linesPerSecond, burst, now } = limits;
  let tokens = burst;
  let filledAt = now();
  let dropped = 0;
  return (fields, message) => {
    const at = now();
    tokens = Math.min(burst, tokens + ((at - filledAt) / 1_000) * linesPerSecond);
    filledAt = at;
    if (tokens < 1) {
      dropped += 1;
      return;
    }
    tokens -= 1;
    log.warn(dropped === 0 ? fields : { ...fields, dropped }, message);
    dropped = 0;
  };
}
