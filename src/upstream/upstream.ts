/** One configured upstream through its life: started, negotiated, watched, and started again when it went away. */

import { type ListKind, listKinds } from '../protocol/methods.ts';
import { bounded } from './bounded.ts';
import type { AskRoots, CallerRoots } from './caller-roots.ts';
import { type Channel, ChannelError, type ChannelEvents, type Transport } from './channel.ts';
import { Connection, type Profile } from './connection.ts';
import { connectionEvents } from './connection-events.ts';
import { modernDialect } from './dialect.ts';
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
import { OwnerDown } from './owner-down.ts';
import { keepPulse, Unresponsive } from './pulse.ts';
import { Restarts } from './restarts.ts';
import { idle, retire } from './retire.ts';
import { type Live, notUp, troubleIn, type UpstreamState } from './state.ts';
import { declaresTasks } from './task-ids.ts';
import { upstreamKey } from './upstream-key.ts';
import type { UpstreamOptions } from './upstream-options.ts';

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
    const after = troubleIn(this.#state);
    const done = this.#connect();
    const sinceMs = this.#options.now();
    this.#state = { kind: 'starting', sinceMs, done, isWaking: kind === 'asleep', after };
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
    throw notUp(this.name, state, this.#options.now());
  }

  /** The roots of its one caller's client are others now; `ask` asks it for them. */
  rootsChanged(ask: AskRoots): void {
    const { live, callerRoots } = this;
    live?.connection.channel.rootsChanged?.(ask);
    callerRoots?.changed(ask);
    // The modern era asks each time that it wants to know.
    if (callerRoots !== undefined && live?.profile.dialect.era === 'legacy')
      void live.connection.notify('notifications/roots/list_changed');
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
    this.#options.stopped?.();
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
      asleep: () => this.#fellAsleep(connection),
      doubt: (kinds) => this.#hears(kinds, false),
      logged: (level, message) => this.#options.events.logged(this, level, message),
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
      if (channel.profile === undefined) this.#lookAfter(connection, profile);
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
      this.#fall(afterRefusal(startFailure(error as Error, channel.noise), this.#refused), false);
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
    const waitMs =
      error instanceof OwnerDown ? error.waitMs : this.#restarts.fell(upMs, askedPatienceMs(error));
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

  /** The process that has it let it sleep. */
  #fellAsleep(connection: Connection): void {
    const { live } = this;
    if (live?.connection === connection) this.#sleep(connection, live.profile);
  }

  /** Changes of these lists are told from now on; again, if they were before. */
  #hears(kinds: readonly ListKind[], again: boolean): void {
    this.#watching = true;
    if (again) this.#options.events.listChanged(this, kinds);
    else this.#options.events.mayHaveChanged(this, kinds);
  }

  /** Keeps a stream open on which changes are told, where the upstream has one. */
  #watch(connection: Connection, profile: Profile): void {
    const { events, random, now } = this.#options;
    // Whoever speaks to the server tells of them without being asked.
    if (connection.channel.profile !== undefined) return;
    this.#unwatch = watchLists(connection, profile, {
      open: (kinds, again) => this.#hears(kinds, again),
      ended: () => {
        this.#watching = false;
      },
      count: (delta) => events.listening(this, delta),
      random,
      now,
    });
  }
}
