/** What a call waits for beside the answer itself. */
import type { Call } from '../protocol/call.ts';

/** Settles as `done` does; until then it is upstreams that take the time, not the gateway. */
export async function waited<T>(call: Call, nowMs: () => number, done: Promise<T>): Promise<T> {
  const startMs = nowMs();
  try {
    return await done;
  } finally {
    call.upstreamMs += nowMs() - startMs;
  }
}
