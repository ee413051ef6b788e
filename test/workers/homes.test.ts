/** Clients of `mcpyard serve` with three workers whose every request is a connection of its own, and so comes to another. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientOverHttp, everyCapability, type PairClient } from '../support/pair-clients.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { endAll, serveWorkers, type Workers } from './gateway.ts';

const servers = {
  'a legacy server over stdio': { era: 'legacy', transport: 'stdio' },
  'a modern server over stdio': { era: 'modern', transport: 'stdio' },
  'a legacy server over HTTP': { era: 'legacy', transport: 'http' },
} as const;

const said = { role: 'assistant', content: { type: 'text', text: 'Said' }, model: 'm' };

describe.each(Object.entries(servers))('three workers in front of %s', (_, kind) => {
  let upstream: Upstream;
  let workers: Workers;
  beforeAll(async () => {
    upstream = await startUpstream(kind);
    workers = await serveWorkers({ workers: 3, servers: { up: upstream.server } });
  });
  afterAll(async () => {
    await endAll();
    await upstream.stop();
  });

  const connect = (version: string): Promise<PairClient> =>
    clientOverHttp(workers.url, version, everyCapability);

  describe.each(['2026-07-28', '2025-11-25', '2025-03-26'])(
    'have one client of %s between them',
    (version) => {
      test('that is asked by one and answers another', async () => {
        const client = await connect(version);
        for (let round = 0; round < 6; round++) {
          const { response } = await client.call('interview', { kinds: 'sampling', rounds: 2 }, () => said);
          const text = JSON.stringify([said, said]);
          expect(response.result).toMatchObject({ content: [{ text }] });
        }
      });

      test('that hears each update of what it watches once', async () => {
        const client = await connect(version);
        const [uri, last] = ['raw://raw/one', 'raw://raw/item/9'];
        const stream = await client.hear([uri, last]);
        const rounds = 4;
        for (let round = 0; round < rounds; round++) await client.call('announce', { what: 'resource', uri });
        await client.call('announce', { what: 'resource', uri: last });
        const told: unknown[] = [];
        while (!told.includes(last)) told.push((await stream.next()).params?.['uri']);
        expect(told.filter((one) => one !== undefined)).toEqual([uri, uri, uri, uri, last]);
        stream.close();
      });

      test('whose log level all of them know', async () => {
        const client = await connect(version);
        for (const [level, wanted] of [
          ['error', ['error']],
          ['debug', ['debug', 'error']],
        ] as const) {
          await client.setLevel(level);
          for (let round = 0; round < 4; round++) {
            const { notifications } = await client.call('log', { levels: 'debug,error' });
            expect(notifications.map(({ params }) => params?.['level'])).toEqual(wanted);
          }
        }
      });
    },
  );
});
