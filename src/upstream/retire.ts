/** The end of what gets no new calls any more, once those that it has are over. */
import type { Connection } from './connection.ts';

/** It may finish the calls that it carries. */
const retireMs = 30_000;
const retireStepMs = 50;

/** Closes a connection when the calls that it still carries have ended, or after a while. */
export function retire(connection: Connection): void {
  void idle(() => connection.callsInFlight > 0, retireMs).then(() => connection.close());
}

/** Resolves when it is no longer busy, at the latest after `withinMs`. */
export async function idle(isBusy: () => boolean, withinMs: number): Promise<void> {
  const untilMs = performance.now() + withinMs;
  while (isBusy() && performance.now() < untilMs)
    await new Promise<void>((resolve) => {
      setTimeout(resolve, retireStepMs).unref();
    });
}
