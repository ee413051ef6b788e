/** How each server is, of what several processes know of it. */
import type { UpstreamHealth } from '../observe/health.ts';

/** Where one knows a server to be further than another, what that one says counts. */
const rank: Readonly<Record<UpstreamHealth['state'], number>> = {
  up: 6,
  asleep: 5,
  starting: 4,
  crash_loop: 3,
  down: 2,
  idle: 1,
  disabled: 0,
};

/**
 * In the order of `names`. Of a server that the primary runs, `owner` says how it is, and the workers what of it is offered; any
 * other is as it is in the worker that gets furthest with it.
 */
export function mergedHealth(
  names: readonly string[],
  owner: readonly UpstreamHealth[],
  workers: readonly (readonly UpstreamHealth[])[],
): readonly UpstreamHealth[] {
  const owned = new Map(owner.map((one) => [one.name, one]));
  return names.flatMap((name) => {
    const seen = workers.flatMap((all) => all.filter((one) => one.name === name));
    const best = seen.toSorted((a, b) => rank[b.state] - rank[a.state])[0];
    const own = owned.get(name);
    if (own === undefined) return best === undefined ? [] : [instancesOf(best, seen)];
    return [best === undefined ? own : { ...offered(best), ...withoutOffers(own) }];
  });
}

/** For how many callers it runs in all of them. */
function instancesOf(best: UpstreamHealth, seen: readonly UpstreamHealth[]): UpstreamHealth {
  if (best.instances === undefined) return best;
  return { ...best, instances: seen.reduce((sum, { instances = 0 }) => sum + instances, 0) };
}

function offered({ name, tools, prompts, resources, leftOut }: UpstreamHealth) {
  const counts = Object.entries({ tools, prompts, resources }).filter(([, count]) => count !== undefined);
  return { name, leftOut, ...Object.fromEntries(counts) };
}

function withoutOffers({ tools: _t, prompts: _p, resources: _r, leftOut: _l, ...own }: UpstreamHealth) {
  return own;
}
