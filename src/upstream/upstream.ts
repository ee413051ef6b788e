/** One configured upstream through its life: started, negotiated, watched, and started again when it went away. */

import type { Log } from '../observe/log.ts';
import { own, RpcError } from '../protocol/errors.ts';
import type { ScanOptions } from '../protocol/json.ts';
import { type ListKind, listKinds } from '../protocol/methods.ts';
import type { StateOptions } from './asked-state.ts';
import { bounded } from './bounded.ts';
import type { CallerRoots } from './caller-roots.ts';
import { type Channel, ChannelError, type ChannelEvents, type Transport } from './channel.ts';
import { Connection, type Profile } from './connection.ts';
import { connectionEvents } from './connection-events.ts';
import { type Identity, modernDialect } from './dialect.ts';
import { askedPatienceMs, reasonOf, startFailure } from './failure.ts';
import type { KeyWatch } from './key-watch.ts';
import { keyWatches } from './key-watches.ts';
import { declaresChanges, watchLists } from './list-watch.ts';
import {
  afterRefusal,
  initialize,
  type NegotiateOptions,
  negotiate,
  PostRefused,
  ProbeEndedChild,
} from './negotiate.ts';
import { keepPulse, type PulseOptions, Unresponsive } from './pulse.ts';
import type { ParkedCalls } from './questions.ts';
import { type RestartSettings, Restarts } from './restarts.ts';
import { idle, retire } from './retire.ts';
import { type Live, type UpstreamState, whyNotUp } from './state.ts';
import { declaresTasks, type TaskIds } from './task-ids.ts';
import type { UpstreamEvents } from './upstream-events.ts';
import { upstreamKey } from './upstream-key.ts';

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
  readonly events: UpstreamEvents;
  readonly log: Log;
  readonly now: () => number;
  readonly random: () => number;
}

export class Upstream {
  readonly name: string;
  readonly context: string | undefined;
  /** What tells it from all other upstreams, those of other contexts included. */
  readonly key: string;
  readonly resources: KeyWatch;
  readonly tasks: KeyWatch;
  readonly callerRoots: CallerRoots | undefined;
  readonly #options: UpstreamOptions;
  readonly #restarts: Restarts;
  #state: UpstreamState = { kind: 'idle' };
  #probe = true;
  #transport: Transport;
  /** What the transport before this one was refused with. */
  #refused: PostRefused | undefined;
  #timer: NodeJS.Timeout | undefined;
  #connection: Connection | undefined;
  #unwatch: (() => void) | undefined;
  #stopPulse: (() => void) | undefined;
  #stableTimer: NodeJS.Timeout | undefined;
  #watching = false;
  #closing: Promise<void> = Promise.resolve();
  #recovering: Promise<void> | undefined;

  constructor(options: UpstreamOptions) {
    this.name = options.name;
    this.context = options.context;
    this.key = upstreamKey(options.name, options.context);
    this.callerRoots = options.callerRoots;
    [this.#transport] = options.transports;
    this.#options = options;
    this.#restarts = new Restarts(options.restart, options.random);
    const watched = keyWatches({
      upstream: options.name,
      timeoutMs: options.startTimeoutMs,
      random: options.random,
      now: options.now,
      listening: (delta) => options.events.listening(this, delta),
      updated: (uri) => options.events.resourceUpdated(this, uri),
      taskChanged: (notice) => options.events.taskChanged(this, notice),
    });
    this.resources = watched.resources;
    this.tasks = watched.tasks;
  }

  get state(): UpstreamState {
    return this.#state;
  }

  /** The one in use, or the one that was tried last. */
  get transport(): Transport {
    return this.#transport;
  }

  get live(): Live | undefined {
    return this.#state.kind === 'up' ? this.#state.live : undefined;
  }

  /** What it said of itself, also while it is asleep. */
  get profile(): Profile | undefined {
    if (this.#state.kind === 'asleep') return this.#state.profile;
    return this.live?.profile;
  }

  /** Falls in a row that are so many that its process only ever ends. */
  get crashLoop(): number | undefined {
    return this.transport === 'stdio' && this.#restarts.isLoop ? this.#restarts.falls : undefined;
  }

  /** Whether the upstream tells of changes of this list, now. */
  pushes(kind: ListKind): boolean {
    const live = this.live;
    if (live === undefined || !declaresChanges(live.profile, kind)) return false;
    return this.#watching || (live.profile.dialect.era === 'legacy' && this.transport !== 'streamable-http');
  }

  /** Starts it, and starts it again for as long as it is not stopped. */
  start(): void {
    const { kind } = this.#state;
    if (kind !== 'idle' && kind !== 'down' && kind !== 'asleep') return;
    clearTimeout(this.#timer);
    [this.#transport] = this.#options.transports;
    this.#refused = undefined;
    const done = this.#connect();
    this.#state = { kind: 'starting', sinceMs: this.#options.now(), done, isWaking: kind === 'asleep' };
  }

  /** Starts it where it was stopped for want of calls. */
  wake(): void {
    if (this.#state.kind === 'asleep') this.start();
  }

  /** The live upstream, waiting for a start that is under way; rejects with an RpcError that says why there is none. */
  async ready(waitMs: number): Promise<Live> {
    this.wake();
    if (this.#state.kind === 'starting') {
      const { sinceMs, isWaking } = this.#state;
      const leftMs = sinceMs + (isWaking ? this.#options.startTimeoutMs : waitMs) - this.#options.now();
      if (leftMs > 0) await bounded(this.#state.done, leftMs);
    }
    const state = this.#state;
    if (state.kind === 'up') return state.live;
    throw new RpcError(
      own.upstreamDown,
      `server \`${this.name}\` ${whyNotUp(this.#state, this.#options.now())}; nothing was sent`,
    );
  }

  /** Watches what the one before it does, which only ends its calls. */
  succeed(before: Upstream): void {
    this.resources.succeed(before.resources);
    this.tasks.succeed(before.tasks);
  }

  /** Ends it for good once nobody uses it any more, nor any call waits for its caller, after `withinMs` at the latest. */
  async retire(withinMs: number, isUsed: (upstream: Upstream) => boolean): Promise<void> {
    await idle(() => isUsed(this) || (this.live?.connection.callsInFlight ?? 0) > 0, withinMs);
    await this.stop();
  }

  /** Ends what it runs, if it runs anything, within this turn of the event loop. */
  kill(): void {
    this.#connection?.channel.kill?.();
  }

  /** Ends it for good, with all that it started. */
  async stop(): Promise<void> {
    const starting = this.#state.kind === 'starting' ? this.#state.done : undefined;
    this.#state = { kind: 'stopped' };
    clearTimeout(this.#timer);
    this.#disconnected();
    // A start that is under way may have opened a channel that nobody else knows of.
    await Promise.all([this.#closing, this.#connection?.close(), starting]);
  }

  async #connect(): Promise<void> {
    // What the last child left behind may still hold its port or its files.
    await this.#closing;
    if (this.#isStopped()) return;
    const events: ChannelEvents = {
      message: (bytes) => connection.receive(bytes, undefined),
      stray: (id) => connection.stray(id),
      closed: (cause) => this.#lost(connection, cause),
    };
    const channel = await this.#open(events);
    if (channel === undefined) return;
    const connection: Connection = new Connection(channel, modernDialect(this.#options.identity), {
      ...this.#options,
      upstream: this.name,
      events: connectionEvents(this, this.#options, {
        failed: (error) => this.#failed(connection, error),
        recover: () => this.#recover(connection),
      }),
    });
    this.#connection = connection;
    try {
      const profile = await negotiate(connection, this.#negotiation());
      if (this.#connection !== connection || this.#isStopped()) return;
      this.#state = { kind: 'up', live: { connection, profile }, sinceMs: this.#options.now() };
      this.#watch(connection, profile);
      this.#lookAfter(connection, profile);
      for (const watch of [this.resources, this.tasks])
        watch
          .connected(connection, profile)
          .catch((error: unknown) =>
            this.#options.log.warn({ err: error }, `${this.name}: its ${watch.kind} are not watched`),
          );
      this.#options.events.up(this);
    } catch (error) {
      await connection.close();
      if (this.#isStopped() || this.#connection !== connection) return;
      if (error instanceof ProbeEndedChild) {
        this.#probe = false;
        await this.#connect();
        return;
      }
      if (error instanceof PostRefused) {
        this.#refused = error;
        this.#transport = this.#nextTransport() ?? this.#transport;
        await this.#connect();
        return;
      }
      this.#fall(afterRefusal(startFailure(error as Error), this.#refused), false);
    }
  }

  /** Undefined where it is not wanted any more, or could not be loaded, after which it is down. */
  async #open(events: ChannelEvents): Promise<Channel | undefined> {
    try {
      const channel = await this.#options.open(events, this.#transport);
      if (!this.#isStopped()) return channel;
      await channel.close();
    } catch (error) {
      if (!this.#isStopped()) this.#fall(error as Error, false);
    }
    return undefined;
  }

  /** Asked anew each time, since it changes while something is waited for. */
  #isStopped(): boolean {
    return this.#state.kind === 'stopped';
  }

  /** A session that the server forgot is opened again, once for all whose requests met it. */
  #recover(connection: Connection): Promise<void> {
    this.#recovering ??= this.#reopen(connection).finally(() => {
      this.#recovering = undefined;
    });
    return this.#recovering;
  }

  async #reopen(connection: Connection): Promise<void> {
    const profile = await initialize(connection, this.#negotiation(), this.#options.startTimeoutMs);
    if (this.live?.connection !== connection) return;
    this.#options.log.info({ upstream: this.name }, `${this.name}: its session was lost and is open again`);
    this.#unwatch?.();
    this.#watch(connection, profile);
    await this.resources.connected(connection, profile);
    this.#options.events.mayHaveChanged(this, listKinds);
  }

  #nextTransport(): Transport | undefined {
    const { transports } = this.#options;
    return transports[transports.indexOf(this.#transport) + 1];
  }

  #negotiation(): NegotiateOptions {
    const { identity, scan, startTimeoutMs } = this.#options;
    const fallback = this.#nextTransport() !== undefined;
    return {
      upstream: this.name,
      identity,
      scan,
      timeoutMs: startTimeoutMs,
      probe: this.#probe,
      fallback,
      tellsRoots: this.callerRoots !== undefined,
    };
  }

  #failed(connection: Connection, error: Error): void {
    const reason = reasonOf(error);
    if (reason !== undefined) this.#options.events.failed(this, reason);
    if (this.transport === 'stdio' || !(error instanceof ChannelError) || error.reason !== 'unreachable')
      return;
    if (this.live?.connection !== connection) return;
    this.#replace(connection, error);
  }

  /** Another connection is opened, and a process started for it. */
  #replace(connection: Connection, error: Error): void {
    if (this.transport === 'stdio') this.#closing = connection.close();
    else retire(connection);
    this.#fall(error, true);
  }

  /** The channel ended by itself while the upstream was up. */
  #lost(connection: Connection, cause: Error): void {
    if (this.live?.connection !== connection) return;
    this.#closing = connection.close();
    this.#fall(cause, true);
  }

  #fall(error: Error, restart: boolean): void {
    const now = this.#options.now();
    const upMs = this.#state.kind === 'up' ? now - this.#state.sinceMs : 0;
    this.#disconnected();
    // The next process may be another, and one that fell on its first words for another reason must be asked again.
    this.#probe = true;
    const waitMs = this.#restarts.fell(upMs, askedPatienceMs(error));
    this.#state = { kind: 'down', error, nextTryMs: now + waitMs };
    this.#options.events.down(this, error, restart);
    // At once where it was up, so that whoever calls now waits for it instead of being told that it is down.
    if (waitMs === 0 && restart) this.start();
    else this.#timer = setTimeout(() => this.start(), waitMs);
  }

  #disconnected(): void {
    clearTimeout(this.#stableTimer);
    this.#stopPulse?.();
    this.#unwatch?.();
    this.resources.disconnected();
    this.tasks.disconnected();
    this.#watching = false;
  }

  /** For as long as it is up. */
  #lookAfter(connection: Connection, profile: Profile): void {
    const { probe, idleMs, now, restart, events } = this.#options;
    this.#stableTimer = setTimeout(() => {
      this.#restarts.reset();
      events.stable(this);
    }, restart.stableMs).unref();
    this.#stopPulse = keepPulse(connection, {
      probe,
      idleMs,
      now,
      dead: (error) => {
        if (this.live?.connection === connection) this.#replace(connection, new Unresponsive(error));
      },
      idle: () => {
        if (this.live?.connection === connection) this.#sleep(connection, profile);
      },
    });
  }

  #sleep(connection: Connection, profile: Profile): void {
    // Of tasks nobody knows here whether they still run.
    if (this.resources.isWatched || declaresTasks(profile.capabilities)) return;
    this.#disconnected();
    this.#state = { kind: 'asleep', profile };
    this.#closing = connection.close();
    this.#options.events.asleep(this);
  }

  /** Keeps a stream open on which changes are told, where the upstream has one. */
  #watch(connection: Connection, profile: Profile): void {
    const { events, random, now } = this.#options;
    this.#unwatch = watchLists(connection, profile, {
      open: (kinds, again) => {
        this.#watching = true;
        if (again) events.listChanged(this, kinds);
        else events.mayHaveChanged(this, kinds);
      },
      ended: () => {
        this.#watching = false;
      },
      count: (delta) => events.listening(this, delta),
      random,
      now,
    });
  }
}
