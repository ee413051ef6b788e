/** One configured upstream through its life: started, negotiated, watched, and started again when it went away. */

import type { Log } from '../observe/log.ts';
import { own, RpcError } from '../protocol/errors.ts';
import type { ScanOptions } from '../protocol/json.ts';
import { type ListKind, listKinds, lists } from '../protocol/methods.ts';
import type { StateOptions } from './asked-state.ts';
import { type Backoff, exponentialBackoff } from './backoff.ts';
import { type Channel, ChannelError, type ChannelEvents, type Transport } from './channel.ts';
import { Connection, type Profile } from './connection.ts';
import { type Identity, modernDialect } from './dialect.ts';
import { reasonOf } from './failure.ts';
import { canWatch, KeyWatch } from './key-watch.ts';
import { initialize, type NegotiateOptions, negotiate, PostRefused, ProbeEndedChild } from './negotiate.ts';
import type { ParkedCalls } from './questions.ts';
import type { TaskIds } from './task-ids.ts';
import type { TaskNotice } from './task-notice.ts';
import { upstreamKey } from './upstream-key.ts';

/** An upstream that answers. */
export interface Live {
  readonly connection: Connection;
  readonly profile: Profile;
}

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'starting'; readonly sinceMs: number; readonly done: Promise<void> }
  | { readonly kind: 'up'; readonly live: Live; readonly sinceMs: number }
  | { readonly kind: 'down'; readonly error: Error; readonly nextTryMs: number }
  | { readonly kind: 'stopped' };

export interface UpstreamEvents {
  up(upstream: Upstream): void;
  /** `restart` tells a child that went away from one that never came up. */
  down(upstream: Upstream, error: Error, restart: boolean): void;
  listChanged(upstream: Upstream, kinds: readonly ListKind[]): void;
  /** By the upstream's own URI. */
  resourceUpdated(upstream: Upstream, uri: string): void;
  taskChanged(upstream: Upstream, notice: TaskNotice): void;
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
  readonly roots: readonly string[];
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

/** Up for this long, it counts as well: the next fall is waited for as briefly as the first. */
const stableMs = 10_000;
/** A replaced HTTP connection may finish the calls that it carries. */
const retireMs = 30_000;

export class Upstream {
  readonly name: string;
  readonly context: string | undefined;
  /** What tells it from all other upstreams, those of other contexts included. */
  readonly key: string;
  readonly resources: KeyWatch;
  readonly tasks: KeyWatch;
  readonly #options: UpstreamOptions;
  readonly #backoff: Backoff;
  #state: State = { kind: 'idle' };
  #probe = true;
  #transport: Transport;
  /** What the transport before this one was refused with. */
  #refused: PostRefused | undefined;
  #timer: NodeJS.Timeout | undefined;
  #connection: Connection | undefined;
  #unwatch: (() => void) | undefined;
  #watching = false;
  #closing: Promise<void> = Promise.resolve();
  #recovering: Promise<void> | undefined;

  constructor(options: UpstreamOptions) {
    this.name = options.name;
    this.context = options.context;
    this.key = upstreamKey(options.name, options.context);
    [this.#transport] = options.transports;
    this.#options = options;
    this.#backoff = exponentialBackoff(options.random);
    const watch = {
      upstream: options.name,
      timeoutMs: options.startTimeoutMs,
      random: options.random,
      now: options.now,
      listening: (delta: 1 | -1) => options.events.listening(this, delta),
    };
    this.resources = new KeyWatch({
      ...watch,
      kind: 'resources',
      missed: (uris) => {
        for (const uri of uris) options.events.resourceUpdated(this, uri);
      },
    });
    // Whoever follows a task can ask for it; only its caller may.
    this.tasks = new KeyWatch({ ...watch, kind: 'tasks', missed: () => undefined });
  }

  get state(): State {
    return this.#state;
  }

  /** The one in use, or the one that was tried last. */
  get transport(): Transport {
    return this.#transport;
  }

  get live(): Live | undefined {
    return this.#state.kind === 'up' ? this.#state.live : undefined;
  }

  /** Whether the upstream tells of changes of this list, now. */
  pushes(kind: ListKind): boolean {
    const live = this.live;
    if (live === undefined || !declaresChanges(live.profile, kind)) return false;
    return this.#watching || (live.profile.dialect.era === 'legacy' && this.transport !== 'streamable-http');
  }

  /** Starts it, and starts it again for as long as it is not stopped. */
  start(): void {
    if (this.#state.kind !== 'idle' && this.#state.kind !== 'down') return;
    clearTimeout(this.#timer);
    [this.#transport] = this.#options.transports;
    this.#refused = undefined;
    const done = this.#connect();
    this.#state = { kind: 'starting', sinceMs: this.#options.now(), done };
  }

  /** The live upstream, waiting for a start that is under way; rejects with an RpcError that says why there is none. */
  async ready(waitMs: number): Promise<Live> {
    if (this.#state.kind === 'starting') {
      const leftMs = this.#state.sinceMs + waitMs - this.#options.now();
      if (leftMs > 0) await bounded(this.#state.done, leftMs);
    }
    const state = this.#state;
    if (state.kind === 'up') return state.live;
    throw new RpcError(own.upstreamDown, `server \`${this.name}\` ${this.#why()}; nothing was sent`);
  }

  /** Ends it for good, with all that it started. */
  async stop(): Promise<void> {
    this.#state = { kind: 'stopped' };
    clearTimeout(this.#timer);
    this.#unwatch?.();
    this.resources.disconnected();
    this.tasks.disconnected();
    await Promise.all([this.#closing, this.#connection?.close()]);
  }

  #why(): string {
    const state = this.#state;
    switch (state.kind) {
      case 'down': {
        const inS = Math.max(0, Math.ceil((state.nextTryMs - this.#options.now()) / 1000));
        return `is down: ${state.error.message} (next try in ${inS} s)`;
      }
      case 'starting':
        return 'is still starting';
      case 'idle':
      case 'stopped':
      case 'up':
        return 'is stopped';
      default:
        throw state satisfies never;
    }
  }

  async #connect(): Promise<void> {
    // What the last child left behind may still hold its port or its files.
    await this.#closing;
    if (this.#isStopped()) return;
    const events: ChannelEvents = {
      message: (bytes) => connection.receive(bytes, undefined),
      closed: (cause) => this.#lost(connection, cause),
    };
    const channel = await this.#open(events);
    if (channel === undefined) return;
    const connection: Connection = new Connection(channel, modernDialect(this.#options.identity), {
      upstream: this.name,
      scan: this.#options.scan,
      resultBytesMax: this.#options.resultBytesMax,
      roots: this.#options.roots,
      parks: this.#options.parks,
      state: this.#options.state,
      taskIds: this.#options.taskIds,
      events: {
        listChanged: (kinds) => this.#options.events.listChanged(this, kinds),
        resourceUpdated: (uri) => this.#options.events.resourceUpdated(this, uri),
        taskChanged: (notice) => this.#options.events.taskChanged(this, notice),
        failed: (error) => this.#failed(connection, error),
        refused: (method, why) =>
          this.#options.log.warn(
            { upstream: this.name, method },
            `${this.name}: ${method} was refused: ${why}`,
          ),
        recover: () => this.#recover(connection),
        passed: (kind) => this.#options.events.passed(this.name, kind),
        dropped: (kind) => this.#options.events.dropped(this.name, kind),
      },
    });
    this.#connection = connection;
    try {
      const profile = await negotiate(connection, this.#negotiation());
      if (this.#connection !== connection || this.#isStopped()) return;
      this.#state = { kind: 'up', live: { connection, profile }, sinceMs: this.#options.now() };
      this.#watch(connection, profile);
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
      this.#fall(afterRefusal(error as Error, this.#refused), false);
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
    return { upstream: this.name, identity, scan, timeoutMs: startTimeoutMs, probe: this.#probe, fallback };
  }

  #failed(connection: Connection, error: Error): void {
    const reason = reasonOf(error);
    if (reason !== undefined) this.#options.events.failed(this, reason);
    if (this.transport === 'stdio' || !(error instanceof ChannelError) || error.reason !== 'unreachable')
      return;
    if (this.live?.connection !== connection) return;
    retire(connection);
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
    if (this.#state.kind === 'up' && now - this.#state.sinceMs >= stableMs) this.#backoff.reset();
    this.#unwatch?.();
    this.resources.disconnected();
    this.tasks.disconnected();
    this.#watching = false;
    // The next process may be another, and one that fell on its first words for another reason must be asked again.
    this.#probe = true;
    const waitMs = this.#backoff.next();
    this.#state = { kind: 'down', error, nextTryMs: now + waitMs };
    this.#options.events.down(this, error, restart);
    // At once means that whoever calls now waits for it instead of being told that it is down.
    if (waitMs === 0) this.start();
    else this.#timer = setTimeout(() => this.start(), waitMs);
  }

  /** Keeps a stream open on which changes are told, where the upstream has one. */
  #watch(connection: Connection, profile: Profile): void {
    const kinds = (['tools', 'prompts', 'resources'] as const).filter((kind) =>
      declaresChanges(profile, kind),
    );
    // Without changed lists, the stream of a legacy server still carries what its resources do.
    const isWatched = profile.dialect.era === 'legacy' && canWatch(profile);
    if (kinds.length === 0 && !isWatched) return;
    let again = false;
    this.#unwatch = connection.watch(kinds, {
      open: () => {
        this.#watching = true;
        const { listChanged, mayHaveChanged } = this.#options.events;
        (again ? listChanged : mayHaveChanged)(this, [...kinds, 'templates']);
        again = true;
      },
      ended: () => {
        this.#watching = false;
      },
      count: (delta) => this.#options.events.listening(this, delta),
      random: this.#options.random,
      now: this.#options.now,
    });
  }
}

const declaresChanges = (profile: Profile, kind: ListKind): boolean => {
  const capability = profile.capabilities[lists[kind].capability];
  return (
    typeof capability === 'object' &&
    capability !== null &&
    (capability as { listChanged?: unknown }).listChanged === true
  );
};

/** Both of what was tried, since nobody can know which of the two was meant to work. */
const afterRefusal = (error: Error, refused: PostRefused | undefined): Error =>
  refused === undefined
    ? error
    : new Error(`${refused.message}; over HTTP+SSE: ${error.message}`, { cause: error });

async function bounded(done: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([done, late]);
  clearTimeout(timer);
}

/** Closes a connection when the calls that it still carries have ended, or after a while. */
function retire(connection: Connection): void {
  const stepMs = 250;
  let leftMs = retireMs;
  const timer = setInterval(() => {
    leftMs -= stepMs;
    if (connection.callsInFlight > 0 && leftMs > 0) return;
    clearInterval(timer);
    void connection.close();
  }, stepMs);
  timer.unref();
}
