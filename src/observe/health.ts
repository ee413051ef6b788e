/** What is known of the gateway's health, and the answers of `/healthz` and `/readyz`, which need no login. */
import type { Secrets } from './secrets.ts';

export interface UpstreamHealth {
  readonly name: string;
  /** `asleep` is stopped for want of calls, until one comes; `idle` the same of a server of which each caller has its own; `crash_loop` is a child that ends again and again. */
  readonly state: 'starting' | 'up' | 'asleep' | 'down' | 'crash_loop' | 'disabled' | 'idle';
  /** For how many callers it runs, where each has its own. */
  readonly instances?: number;
  readonly era?: 'modern' | 'legacy';
  /** The revision that was agreed on. */
  readonly version?: string;
  readonly transport: string;
  readonly tools?: number;
  readonly prompts?: number;
  readonly resources?: number;
  /** There where calls are refused since it failed too often in a row. */
  readonly breaker?: 'open';
  /** Why it isn't up; may hold secrets, which whoever shows it hides. */
  readonly error?: string;
  /** What the upstream offers but the catalog doesn't list. */
  readonly leftOut: readonly { readonly kind: string; readonly name: string; readonly reason: string }[];
}

export interface Health {
  /** Whether clients are served: false until the listeners are up and from the moment that stopping begins. */
  ready(): boolean;
  upstreams(): readonly UpstreamHealth[];
  /** Looks how they are now, where that has to be asked for; waits for no more than a moment. */
  look?(): Promise<void>;
}

/** An answer in JSON. */
export interface HealthAnswer {
  readonly status: number;
  readonly body: string;
}

const errorLengthMax = 300;

/** The process runs and its event loop turns. */
export const healthz = (): HealthAnswer => ({ status: 200, body: '{"status":"ok"}' });

/** 200 while clients are served, else 503; an upstream that is down is told and changes nothing. */
export function readyz(health: Health, secrets: Secrets): HealthAnswer {
  const isReady = health.ready();
  const upstreams = health
    .upstreams()
    .map(({ name, state, instances, era, version, transport, tools, breaker, error }) => [
      name,
      {
        state,
        instances,
        era,
        version,
        transport,
        tools,
        breaker,
        error: error === undefined ? undefined : publicError(error, secrets),
      },
    ]);
  return {
    status: isReady ? 200 : 503,
    body: JSON.stringify({
      status: isReady ? 'ok' : 'unavailable',
      upstreams: Object.fromEntries(upstreams),
    }),
  };
}

/** The first line of an error without secrets, nor what a URL says of users and queries; 300 characters at most. */
export function publicError(error: string, secrets: Secrets): string {
  const [line = ''] = secrets.mask(error).split('\n');
  return line
    .replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, '$1')
    .replace(/(\b[a-z][a-z0-9+.-]*:\/\/[^\s?#"'`]*)[?#][^\s"'`]*/gi, '$1')
    .slice(0, errorLengthMax);
}
