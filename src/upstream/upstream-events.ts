/** What an upstream tells of itself. */
import type { ListKind } from '../protocol/methods.ts';
import type { TaskNotice } from './task-notice.ts';
import type { Upstream } from './upstream.ts';

export interface UpstreamEvents {
  up(upstream: Upstream): void;
  /** `restart` tells a child that went away from one that never came up. */
  down(upstream: Upstream, error: Error, restart: boolean): void;
  /** It has been up for as long as a start must hold to count as well. */
  stable(upstream: Upstream): void;
  asleep(upstream: Upstream): void;
  listChanged(upstream: Upstream, kinds: readonly ListKind[]): void;
  /** By the upstream's own URI. */
  resourceUpdated(upstream: Upstream, uri: string): void;
  taskChanged(upstream: Upstream, notice: TaskNotice): void;
  /** A log line that belongs to no call, of one caller's own. */
  logged(upstream: Upstream, level: string, message: Buffer): void;
  /** The stream of changes is open only now, so one may have been missed. */
  mayHaveChanged(upstream: Upstream, kinds: readonly ListKind[]): void;
  failed(upstream: Upstream, reason: string): void;
  /** A stream on which it tells of changes was opened or has ended. */
  listening(upstream: Upstream, delta: 1 | -1): void;
  /** A notification of a call went from it to its caller. */
  passed(upstream: string, kind: string): void;
  /** Something that came from it, or was meant for it, went nowhere. */
  dropped(upstream: string, kind: string): void;
}
