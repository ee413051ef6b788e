/** What becomes of the lists that are kept when a new config takes the place of another. */
import type { Config } from '../config/config.ts';
import { listKinds } from '../protocol/methods.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { upstreamKey } from '../upstream/upstream-key.ts';
import { listKey } from './listing.ts';
import { type Offer, sourceOf } from './offer.ts';
import type { ShelfStore } from './store.ts';

type ListConfig = Pick<Config, 'names' | 'limits'>;

export interface Succession {
  readonly from: ListConfig;
  readonly to: ListConfig;
  /** Those who may have lists of their own. */
  readonly contexts: readonly string[];
}

const keysOf = (offer: Offer, contexts: readonly string[]): readonly string[] => {
  const { name } = offer.server;
  return 'upstream' in offer ? [name] : contexts.map((context) => upstreamKey(name, context));
};

const upstreamsOf = (offer: Offer): readonly Upstream[] =>
  'upstream' in offer ? [offer.upstream] : offer.instances.all();

/**
 * Forgets the lists of servers that are gone, and of those that are listed otherwise now; those of a server that is
 * started anew are kept as last good ones. Returns the upstreams that run on and have to be listed anew.
 */
export function tidy(
  store: ShelfStore,
  known: ReadonlyMap<string, Offer>,
  offers: readonly Offer[],
  { from, to, contexts }: Succession,
): readonly Upstream[] {
  const next = new Map(offers.map((offer) => [offer.server.name, offer]));
  return [...known].flatMap(([name, offer]) => {
    const successor = next.get(name);
    if (successor === offer) return [];
    const isRunning = successor !== undefined && sourceOf(successor) === sourceOf(offer);
    const isAlike =
      successor !== undefined &&
      'upstream' in successor === 'upstream' in offer &&
      listKey(offer.server, from) === listKey(successor.server, to);
    for (const key of keysOf(offer, contexts)) pass(store, key, { isAlike, isRunning });
    return isRunning && !isAlike ? upstreamsOf(successor) : [];
  });
}

function pass(
  store: ShelfStore,
  key: string,
  { isAlike, isRunning }: Record<'isAlike' | 'isRunning', boolean>,
): void {
  store.disown(key);
  if (!isAlike) store.drop(key);
  else if (!isRunning) for (const kind of listKinds) store.evict(key, kind);
}
