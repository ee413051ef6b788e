/** A server of the config with what speaks to it: one upstream for all callers, or one for each. */
import type { Instances } from '../upstream/instances.ts';
import type { Upstream } from '../upstream/upstream.ts';
import type { Member } from './listing.ts';

export type Offer = Pick<Member, 'server'> &
  ({ readonly upstream: Upstream } | { readonly instances: Instances });

/** What its upstreams are held by. */
export const sourceOf = (offer: Offer): Upstream | Instances =>
  'upstream' in offer ? offer.upstream : offer.instances;
