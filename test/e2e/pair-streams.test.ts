/** What servers tell beside results: changes, updates and log lines, to clients of all revisions. */
import { expect, test, vi } from 'vitest';
import type { PairClient } from '../support/pair-clients.ts';
import { describePairs } from '../support/pairs.ts';

const levelsOf = async (client: PairClient): Promise<unknown[]> =>
  (await client.call('log', { levels: 'debug,info,error' })).notifications.map(
    ({ params }) => params?.['level'],
  );

/** The next message but for changed lists, of which those that were told many times may be told once more. */
async function nextUpdate(stream: Awaited<ReturnType<PairClient['hear']>>) {
  let message = await stream.next();
  while (message.method?.endsWith('/list_changed') === true) message = await stream.next();
  return message;
}

describePairs('what a server tells', (pair) => {
  const { kind, upstream } = pair;
  const isModern = kind.version === '2026-07-28';

  test('of a list that changes many times at once is told at once, and at most once more a while later', async () => {
    const stream = await pair.client.hear();
    const startMs = performance.now();
    await pair.client.call('announce', { what: 'tools', times: 20 });
    await pair.client.call('announce', { what: 'prompts', times: 20 });
    const told: unknown[] = [];
    while (!told.includes('notifications/prompts/list_changed')) told.push((await stream.next()).method);
    const tools = told.filter((method) => method === 'notifications/tools/list_changed').length;
    expect(tools).toBeGreaterThan(0);
    // The start may have told of them just before.
    expect(tools).toBeLessThanOrEqual(2 + Math.floor((performance.now() - startMs) / 250));
    stream.close();
  });

  test('of resources reaches who watches them or what they lie under, and nobody else', async () => {
    const stream = await pair.client.hear(['raw://raw/one', 'raw://raw/item/7']);
    const uris = ['raw://raw/two', 'raw://raw/onerous', 'raw://raw/item/7/page', 'raw://raw/one'];
    for (const uri of uris) await pair.client.call('announce', { what: 'resource', uri });
    for (const uri of ['raw://raw/item/7/page', 'raw://raw/one'])
      expect(await nextUpdate(stream)).toMatchObject({
        method: 'notifications/resources/updated',
        params: { uri },
      });
    stream.close();
  });

  test.runIf(!isModern)('of a resource is not told any more once nobody watches it', async () => {
    const [uri, other] = ['raw://raw/item/1', 'raw://raw/item/2'];
    const stream = await pair.client.hear([uri, other]);
    await pair.client.result('resources/unsubscribe', { uri });
    for (const updated of [uri, other])
      await pair.client.call('announce', { what: 'resource', uri: updated });
    expect(await nextUpdate(stream)).toMatchObject({ params: { uri: other } });
    stream.close();
    if (upstream.era === 'modern') return;
    await vi.waitFor(
      () => expect(pair.server.seen().map(({ method }) => method)).toContain('resources/unsubscribe'),
      { timeout: 30_000 },
    );
  });

  test('in log lines comes with the calls of who asked for them, from the level on that each one asked for', async () => {
    const quiet = kind.transport === 'http' ? await pair.gateway.connect() : undefined;
    if (quiet !== undefined) expect(await levelsOf(quiet)).toEqual([]);
    await pair.client.setLevel('error');
    expect(await levelsOf(pair.client)).toEqual(['error']);
    await quiet?.setLevel('info');
    if (quiet !== undefined) expect(await levelsOf(quiet)).toEqual(['info', 'error']);
    expect(await levelsOf(pair.client)).toEqual(['error']);
    await pair.client.setLevel('debug');
    expect(await levelsOf(pair.client)).toEqual(['debug', 'info', 'error']);
  });

  test('of its progress comes with the call, and with no other of the same token', async () => {
    const meta = { progressToken: 7 };
    const asked = ['one', 'two'].map((tag) =>
      pair.client.open('tools/call', {
        name: 'up__progress',
        arguments: { steps: 2, tag },
        _meta: meta,
      }),
    );
    for (const opened of await Promise.all(asked)) {
      const { method, params } = await opened.next();
      expect({ method, params }).toMatchObject({ method: 'notifications/progress', params: meta });
      await opened.end();
    }
  });
});
