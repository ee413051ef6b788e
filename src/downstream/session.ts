/** Sessions of legacy clients: sealed ids that hold what `initialize` fixed, and what lives on this replica beside them. */
import { LRUCache } from 'lru-cache';
import type { Seal } from '../auth/seal.ts';
import { anonymous } from '../config/key-hash.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Caller } from '../protocol/call.ts';
import { modernVersion } from '../protocol/era.ts';
import type { Allowance } from '../protocol/limits.ts';
import { metaKey } from '../protocol/message.ts';
import { LiveSession } from './live-session.ts';
import { type SessionMeta, SessionMetas } from './session-meta.ts';

type Json = Readonly<Record<string, unknown>>;

/** What `initialize` fixed for good. */
export interface SessionFacts {
  readonly version: string;
  readonly capabilities: Json;
  readonly clientInfo: Json;
  readonly caller: string;
  /** Milliseconds since the epoch. */
  readonly expires: number;
  /** Tells two sessions with the same facts apart. */
  readonly nonce: string;
  /** The process that has its own stream; absent where one serves alone. */
  readonly home?: string;
}

export interface Session {
  readonly id: string;
  readonly facts: SessionFacts;
  /** Whose it is: without a key, each session is an authorization context of its own. */
  readonly caller: Caller;
  /** The members of `_meta` that this client's requests get. */
  readonly meta: SessionMeta;
}

export interface SessionsOptions {
  readonly seal: Seal;
  readonly now: () => number;
  /** Of sessions that begin here, where there are several processes. */
  readonly home?: string;
  random(): string;
  /** Sessions that have something alive here: streams, calls, levels. */
  readonly live: Allowance;
  readonly metrics: Pick<Metrics, 'limitHit' | 'sessionEnded'>;
  /** It ended for good. */
  ended(session: Session): void;
}

const lifetimeMs = 7 * 24 * 3600 * 1000;
const idBytesMax = 1024;
const openedMax = 20_000;
const endedMax = 100_000;

/** Those of these members that stand in a capability. */
const declared = (capability: Json, keys: readonly string[]): Json =>
  Object.fromEntries(keys.filter((key) => capability[key] !== undefined).map((key) => [key, {}]));

/** Without a mode that one knows, forms are meant. */
function elicitationOf(version: string, elicitation: Json): Json {
  const modes = version < '2025-11-25' ? {} : declared(elicitation, ['form', 'url']);
  return Object.keys(modes).length === 0 ? { form: {} } : modes;
}

/** Capabilities that the middle and this revision know; their own details are not carried, and tasks of 2025-11-25 are not part of it. */
function known(version: string, capabilities: Json): Json {
  const { roots, sampling, elicitation, extensions } = capabilities;
  const kept: Record<string, unknown> = {};
  if (roots !== undefined) kept['roots'] = {};
  if (isRecord(sampling))
    kept['sampling'] = version < '2025-11-25' ? {} : declared(sampling, ['context', 'tools']);
  if (isRecord(elicitation) && version >= '2025-06-18')
    kept['elicitation'] = elicitationOf(version, elicitation);
  if (isRecord(extensions)) {
    const { 'io.modelcontextprotocol/tasks': _, ...others } = extensions;
    kept['extensions'] = others;
  }
  return kept;
}

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isFacts = (value: unknown): value is SessionFacts =>
  isRecord(value) && typeof value['version'] === 'string' && typeof value['expires'] === 'number';

const metaTextOf = (facts: SessionFacts): string => {
  const members = JSON.stringify({
    [metaKey.version]: modernVersion,
    [metaKey.clientInfo]: facts.clientInfo,
    [metaKey.capabilities]: facts.capabilities,
  });
  return members.slice(1, -1);
};

const callerOf = ({ caller, nonce }: SessionFacts): Caller =>
  // No caller of the config can be named so.
  caller === anonymous ? { name: caller, context: `${caller}/${nonce}` } : { name: caller };

interface Ids {
  readonly opened: LRUCache<string, Session>;
  readonly ended: LRUCache<string, true>;
}

const newIds = (): Ids => ({
  opened: new LRUCache({ max: openedMax }),
  ended: new LRUCache({ max: endedMax, ttl: lifetimeMs }),
});

export class Sessions {
  readonly #options: SessionsOptions;
  /** Made with the first session, since they take their room at once: 4 MB, and 13 ms of each start. */
  #ids: Ids | undefined;
  readonly #metas = new SessionMetas();
  readonly #live = new Map<string, LiveSession>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** A new session; its id is at most 1 KiB, for which what the client says of extensions is dropped if need be. */
  create(version: string, capabilities: Json, clientInfo: Json, caller: string): Session {
    const { seal, now, random, home } = this.#options;
    const facts: SessionFacts = {
      version,
      capabilities: known(version, capabilities),
      clientInfo,
      caller,
      expires: now() + lifetimeMs,
      nonce: random(),
      ...(home === undefined ? {} : { home }),
    };
    const whole = seal.seal(facts);
    if (whole.length <= idBytesMax) return this.#keep(whole, facts);
    const { extensions: _, ...basic } = facts.capabilities;
    const short: SessionFacts = {
      ...facts,
      capabilities: basic,
      clientInfo: {
        name: String(clientInfo['name']).slice(0, 100),
        version: String(clientInfo['version']).slice(0, 50),
      },
    };
    return this.#keep(seal.seal(short), short);
  }

  /** The session of an id; undefined where it is unknown, expired, ended, or another caller's. */
  open(id: string, caller: string): Session | undefined {
    this.#ids ??= newIds();
    if (id.length > idBytesMax || this.#ids.ended.has(id)) return undefined;
    const session = this.#ids.opened.get(id) ?? this.#unseal(id);
    if (session === undefined || session.facts.caller !== caller) return undefined;
    if (this.#options.now() < session.facts.expires) return session;
    this.end(session);
    return undefined;
  }

  /** Ends a session for good, once, with all that lives in it. */
  end(session: Session): void {
    const { now, metrics } = this.#options;
    const { expires, version } = session.facts;
    metrics.sessionEnded(version, Math.min(lifetimeMs, lifetimeMs - (expires - now())) / 1000);
    this.forget(session);
  }

  /** The same for one that was ended elsewhere, and counted there. */
  forget(session: Session): void {
    this.#ids ??= newIds();
    this.#ids.ended.set(session.id, true);
    this.#ids.opened.delete(session.id);
    this.#live.get(session.id)?.end();
    this.#forget(session.id);
    this.#options.ended(session);
  }

  /** What of a session lives here, where there is anything. */
  alive(session: Session): LiveSession | undefined {
    return this.#live.get(session.id);
  }

  /** The same, made where there was none; undefined where too many live already. */
  enliven(session: Session): LiveSession | undefined {
    const found = this.#live.get(session.id);
    if (found !== undefined) return found;
    const { metrics, live: room } = this.#options;
    if (!room.take()) return undefined;
    const live = new LiveSession(
      () => this.#forget(session.id),
      (limit) => metrics.limitHit(limit),
    );
    this.#live.set(session.id, live);
    return live;
  }

  /** Answers all calls that they were cut off, since this gateway was stopped. */
  cut(): void {
    for (const live of this.#live.values()) live.cut();
  }

  /** Ends what lives here; the ids stay valid for other replicas and later starts. */
  stop(): void {
    for (const live of this.#live.values()) live.end();
    for (const id of [...this.#live.keys()]) this.#forget(id);
  }

  #forget(id: string): void {
    if (this.#live.delete(id)) this.#options.live.give();
  }

  #keep(id: string, facts: SessionFacts): Session {
    const session = { id, facts, caller: callerOf(facts), meta: this.#metas.of(metaTextOf(facts)) };
    this.#ids ??= newIds();
    this.#ids.opened.set(id, session);
    return session;
  }

  #unseal(id: string): Session | undefined {
    const facts = this.#options.seal.open(id);
    return isFacts(facts) ? this.#keep(id, facts) : undefined;
  }
}
