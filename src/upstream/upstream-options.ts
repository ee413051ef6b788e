/** What an upstream is made with. */
import type { Log } from '../observe/log.ts';
import type { ScanOptions } from '../protocol/json.ts';
import type { StateOptions } from './asked-state.ts';
import type { CallerRoots } from './caller-roots.ts';
import type { Channel, ChannelEvents, Transport } from './channel.ts';
import type { Identity } from './dialect.ts';
import type { PulseOptions } from './pulse.ts';
import type { ParkedCalls } from './questions.ts';
import type { RestartSettings } from './restarts.ts';
import type { TaskIds } from './task-ids.ts';
import type { UpstreamEvents } from './upstream-events.ts';

export interface UpstreamOptions {
  readonly name: string;
  /** The authorization context whose instance it is; undefined where all share it. */
  readonly context?: string;
  /** In the order in which they are tried: a further one only where the server refused to be spoken to by the one before. */
  readonly transports: readonly [Transport, ...Transport[]];
  readonly identity: Identity;
  readonly scan: ScanOptions;
  readonly resultBytesMax: number;
  readonly startTimeoutMs: number;
  readonly restart: RestartSettings;
  readonly probe: PulseOptions['probe'];
  /** Absent where an idle upstream is kept. */
  readonly idleMs?: number | undefined;
  readonly roots: readonly string[];
  /** The roots of the one caller whose it is; undefined where several share it. */
  readonly callerRoots?: CallerRoots;
  readonly parks: ParkedCalls;
  readonly state: StateOptions;
  readonly taskIds: TaskIds;
  /** Opens the transport; a rejection is a start that failed. */
  open(events: ChannelEvents, transport: Transport): Channel | Promise<Channel>;
  /** It is stopped, so that what the transport keeps between two connections can go. */
  stopped?(): void;
  readonly events: UpstreamEvents;
  readonly log: Log;
  readonly now: () => number;
  readonly random: () => number;
}
