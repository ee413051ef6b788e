/** Runs one suite of tests for every pair: each kind of client in front of each kind of upstream. */
import { afterAll, beforeAll, describe, onTestFinished } from 'vitest';
import { describeEras, describeOwned, type UpstreamKind } from './eras.ts';
import {
  type ClientKind,
  clientKinds,
  ownersClientKinds,
  type PairClient,
  type PairGateway,
} from './pair-clients.ts';
import type { Upstream } from './upstream.ts';

export interface Pair {
  readonly kind: ClientKind;
  readonly upstream: UpstreamKind;
  /** Known once the tests run. */
  readonly client: PairClient;
  readonly gateway: PairGateway;
  readonly server: Upstream;
  /** Starts another gateway in front of the same server for what would hinder other tests; it ends with its test. */
  startOwn(): Promise<PairGateway>;
}

/** Describes `name` once for each pair; the server of the config is called `up`, and `configOf` may say more. */
export function describePairs(
  name: string,
  define: (pair: Pair) => void,
  configOf: (server: Upstream['server']) => object = (up) => ({ servers: { up } }),
): void {
  const ofUpstream = (upstream: UpstreamKind): void => {
    let server: Upstream | undefined;
    beforeAll(async () => {
      server = await upstream.start();
    });
    // Several processes have one child together only where another process runs it.
    const kinds = upstream.owned
      ? ownersClientKinds
      : clientKinds.filter(({ processes }) => processes === 1 || upstream.transport !== 'stdio');
    for (const kind of kinds) {
      describe(`to ${kind.name}`, () => {
        let gateway: PairGateway | undefined;
        let client: PairClient | undefined;
        const started = <T>(value: T | undefined): T => {
          if (value === undefined) throw new Error('nothing is started before the tests run');
          return value;
        };
        const start = (): Promise<PairGateway> =>
          kind.start(configOf(started(server).server), upstream.owned);
        beforeAll(async () => {
          gateway = await start();
          client = await gateway.connect();
        });
        afterAll(async () => gateway?.stop());
        define({
          kind,
          upstream,
          get client() {
            return started(client);
          },
          get gateway() {
            return started(gateway);
          },
          get server() {
            return started(server);
          },
          startOwn: async () => {
            const own = await start();
            onTestFinished(() => own.stop());
            return own;
          },
        });
      });
    }
  };
  describeEras(name, ofUpstream);
  describeOwned(name, ofUpstream);
}
