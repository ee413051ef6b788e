/** How each server of the config is, for health, the status page and `check`. */
import type { Catalog } from './catalog/catalog.ts';
import type { Catalogs } from './catalog/catalogs.ts';
import type { Member } from './catalog/listing.ts';
import type { Config } from './config/config.ts';
import type { Bulkheads } from './gateway/bulkhead.ts';
import type { UpstreamHealth } from './observe/health.ts';
import { troubleIn } from './upstream/state.ts';
import type { Upstream } from './upstream/upstream.ts';

const stateOf = (upstream: Upstream): UpstreamHealth['state'] => {
  switch (upstream.state.kind) {
    case 'up':
      return 'up';
    case 'asleep':
      return 'asleep';
    case 'starting':
    case 'idle':
      return upstream.crashLoop === undefined ? 'starting' : 'crash_loop';
    case 'down':
      return upstream.crashLoop === undefined ? 'down' : 'crash_loop';
    case 'stopped':
      return 'down';
    default:
      throw upstream.state satisfies never;
  }
};

/** What healths are read from. */
export interface Parts {
  readonly catalogs: Catalogs;
  readonly bulkheads: Bulkheads;
}

/** The one that says most of a server of which each caller has its own: one that is up, else the first that there is. */
const exampleOf = ({ instances, upstream }: Member): Upstream =>
  instances?.all().find(({ live }) => live !== undefined) ?? instances?.all()[0] ?? upstream;

function memberHealth(member: Member, within: Catalog, { catalogs, bulkheads }: Parts): UpstreamHealth {
  const { server, instances } = member;
  const upstream = exampleOf(member);
  const catalog = instances === undefined ? within : catalogs.about(upstream);
  const count = instances?.all().length;
  const dialect = upstream.profile?.dialect;
  const trouble = troubleIn(upstream.state);
  const counts = {
    tools: catalog.count(server.name, 'tools'),
    prompts: catalog.count(server.name, 'prompts'),
    resources: catalog.count(server.name, 'resources'),
  };
  const known = Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== undefined));
  return {
    name: server.name,
    state: count === 0 ? 'idle' : stateOf(upstream),
    ...(count === undefined ? {} : { instances: count }),
    // Whoever runs the child, that is how it is spoken to.
    transport: upstream.transport === 'owned' ? 'stdio' : upstream.transport,
    leftOut: catalog.leftOut(server.name),
    ...(bulkheads.isOpen(upstream) ? { breaker: 'open' as const } : {}),
    ...(dialect === undefined ? {} : { era: dialect.era, version: dialect.version }),
    ...known,
    ...(trouble === undefined ? {} : { error: trouble.message }),
  };
}

/** In the order of the config, those that are disabled last. */
export const healthOf = (config: Config, parts: Parts, catalog: Catalog): UpstreamHealth[] => [
  ...catalog.members.map((member) => memberHealth(member, catalog, parts)),
  ...config.disabled.map(({ name, reason }) => ({
    name,
    state: 'disabled' as const,
    transport: '',
    error: reason,
    leftOut: [],
  })),
];
