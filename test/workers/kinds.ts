/** Servers of all kinds for a gateway of several processes: modern and legacy, over stdio and over HTTP. */
import { expect } from 'vitest';
import { callTool, textOf } from '../support/modern-client.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { serveWorkers, type Workers } from './gateway.ts';

export const kinds = ['kid', 'oldKid', 'web', 'oldWeb'] as const;
type Kind = (typeof kinds)[number];

export interface Kinds {
  readonly upstreams: Readonly<Record<Kind, Upstream>>;
  readonly servers: Readonly<Record<Kind, Upstream['server']>>;
  /** Starts a gateway with all of them and waits until each answers. */
  serve(more?: object): Promise<Workers>;
  /** The pids that the children of a server had when they started. */
  pidsOf(kind: Kind): readonly number[];
  stop(): Promise<void>;
}

/** These servers answer in all workers. */
export async function answering(workers: Workers, names: readonly string[] = kinds): Promise<void> {
  for (const name of names)
    for (let at = 0; at < 4; at++) expect(textOf(await callTool(workers.url, `${name}__echo`))).toBe('{}');
}

/** Starts those over HTTP; those over stdio start with the gateway. */
export async function startKinds(): Promise<Kinds> {
  const [kid, oldKid, web, oldWeb] = await Promise.all([
    startUpstream({ transport: 'stdio', name: 'kid' }),
    startUpstream({ transport: 'stdio', era: 'legacy', name: 'oldKid' }),
    startUpstream({ name: 'web' }),
    startUpstream({ era: 'legacy', name: 'oldWeb' }),
  ]);
  const upstreams = { kid, oldKid, web, oldWeb };
  const servers = { kid: kid.server, oldKid: oldKid.server, web: web.server, oldWeb: oldWeb.server };
  return {
    upstreams,
    servers,
    async serve(more = {}) {
      const workers = await serveWorkers({ servers, log: { calls: 'all' }, ...more });
      await answering(workers);
      return workers;
    },
    pidsOf: (kind) =>
      upstreams[kind]
        .seen()
        .flatMap(({ event, pid }) => (event === 'start' && pid !== undefined ? [pid] : [])),
    async stop() {
      await Promise.all(Object.values(upstreams).map((upstream) => upstream.stop()));
    },
  };
}
