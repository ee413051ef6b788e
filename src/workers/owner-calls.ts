/** Places the calls of other processes at a child: through its bulkhead and under its deadline, as if they had come here. */
import type { Member } from '../catalog/listing.ts';
import type { Bulkhead, Bulkheads } from '../gateway/bulkhead.ts';
import { attempt } from '../gateway/forward.ts';
import type { Deadlines } from '../policy/deadline.ts';
import type { Call, Reply } from '../protocol/call.ts';
import { blames } from '../upstream/failure.ts';
import { noTarget } from '../upstream/outgoing.ts';
import type { Live } from '../upstream/state.ts';

export interface Placing {
  readonly bulkheads: Bulkheads;
  readonly deadlines: Deadlines;
  readonly nowMs: () => number;
  /** How long a call waits for a child that is starting. */
  readyMs(): number;
}

const asTask = { ...noTarget, asTask: true };

/** What a call is about stands in its bytes already, in the child's own words. */
export function place(call: Call, member: Member, isTask: boolean, placing: Placing): Promise<Reply> {
  const bulkhead = placing.bulkheads.of(member);
  if (bulkhead.concurrency.enter()) return entered(call, member, isTask, bulkhead, placing);
  return bulkhead.wait(call).then(() => entered(call, member, isTask, bulkhead, placing));
}

/** A call that has its place, which it leaves in the end, however that comes. */
function entered(
  call: Call,
  member: Member,
  isTask: boolean,
  bulkhead: Bulkhead,
  placing: Placing,
): Promise<Reply> {
  const { upstream } = member;
  const { live } = upstream;
  const sent =
    live === undefined
      ? upstream
          .ready(placing.readyMs())
          .then((ready) => send(call, member, isTask, ready, bulkhead, placing))
      : attempt(() => send(call, member, isTask, live, bulkhead, placing));
  return sent.then(
    (reply) => {
      bulkhead.concurrency.leave();
      return reply;
    },
    (error: unknown) => {
      bulkhead.concurrency.leave();
      throw error;
    },
  );
}

function send(
  call: Call,
  { upstream, server }: Member,
  isTask: boolean,
  { connection }: Live,
  bulkhead: Bulkhead,
  { deadlines, nowMs }: Placing,
): Promise<Reply> {
  const isProbe = bulkhead.admit(connection, nowMs());
  const deadline = deadlines.start(call, {
    upstream: upstream.name,
    timeoutMs: server.timeoutMs,
    maxTimeoutMs: server.maxTimeoutMs,
  });
  return attempt(() => connection.send(call, isTask ? asTask : noTarget)).then(
    (reply) => {
      deadlines.end(deadline);
      bulkhead.judge(connection, 'works', isProbe, undefined);
      return reply;
    },
    (error: unknown) => {
      deadlines.end(deadline);
      bulkhead.judge(connection, blames(error) ? 'fails' : 'neither', isProbe, error as Error);
      throw error;
    },
  );
}
