/** The end of a connection that was replaced. */
import type { Connection } from './connection.ts';

/** It may finish the calls that it carries. */
const retireMs = 30_000;
const retireStepMs = 250;

/** Closes a connection when the calls that it still carries have ended, or after a while. */
export function retire(connection: Connection): void {
  let leftMs = retireMs;
  const timer = setInterval(() => {
    leftMs -= retireStepMs;
    if (connection.callsInFlight > 0 && leftMs > 0) return;
    clearInterval(timer);
    void connection.close();
  }, retireStepMs);
  timer.unref();
}
