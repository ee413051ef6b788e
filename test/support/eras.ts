/** Runs one suite of tests against each kind of upstream: both eras, both transports. */
import { afterAll, describe } from 'vitest';
import { type Era, startUpstream, type Transport, type Upstream, type UpstreamOptions } from './upstream.ts';

export interface UpstreamKind {
  readonly era: Era;
  readonly transport: Transport;
  /** Starts an upstream of this kind, which ends with the suite. */
  start(options?: Omit<UpstreamOptions, 'era' | 'transport'>): Promise<Upstream>;
}

const kinds: readonly (readonly [Era, Transport])[] = [
  ['modern', 'http'],
  ['modern', 'stdio'],
  ['legacy', 'http'],
  ['legacy', 'stdio'],
  ['legacy', 'sse'],
];

/** Describes `name` once for each kind of upstream, or for those of one era where `only` names it. */
export function describeEras(name: string, define: (kind: UpstreamKind) => void, only?: Era): void {
  for (const [era, transport] of kinds) {
    if (only !== undefined && era !== only) continue;
    describe(`${name}, from a ${era} upstream over ${transport}`, () => {
      const started: Upstream[] = [];
      afterAll(async () => {
        await Promise.all(started.splice(0).map((upstream) => upstream.stop()));
      });
      define({
        era,
        transport,
        async start(options) {
          const upstream = await startUpstream({ ...options, era, transport });
          started.push(upstream);
          return upstream;
        },
      });
    });
  }
}
