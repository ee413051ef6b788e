/** Runs one suite of tests against each kind of upstream: both eras, both transports. */
import { afterAll, describe } from 'vitest';
import { type Era, startUpstream, type Transport, type Upstream, type UpstreamOptions } from './upstream.ts';

export interface UpstreamKind {
  readonly era: Era;
  readonly transport: Transport;
  /** Whether the gateway uses it through the process that runs it. */
  readonly owned: boolean;
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

function describeEra(
  name: string,
  define: (kind: UpstreamKind) => void,
  kind: Omit<UpstreamKind, 'start'>,
): void {
  const { era, transport, owned } = kind;
  const whose = owned ? ' of another process' : '';
  describe(`${name}, from a ${era} upstream over ${transport}${whose}`, () => {
    const started: Upstream[] = [];
    afterAll(async () => {
      await Promise.all(started.splice(0).map((upstream) => upstream.stop()));
    });
    define({
      ...kind,
      async start(options) {
        const upstream = await startUpstream({ ...options, era, transport });
        started.push(upstream);
        return upstream;
      },
    });
  });
}

/** Describes `name` once for each kind of upstream, or for those of one era where `only` names it. */
export function describeEras(name: string, define: (kind: UpstreamKind) => void, only?: Era): void {
  for (const [era, transport] of kinds) {
    if (only === undefined || era === only) describeEra(name, define, { era, transport, owned: false });
  }
}

/** The same for children that another process runs. */
export function describeOwned(name: string, define: (kind: UpstreamKind) => void): void {
  for (const era of ['modern', 'legacy'] as const)
    describeEra(name, define, { era, transport: 'stdio', owned: true });
}
