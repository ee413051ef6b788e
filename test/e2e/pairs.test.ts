/** What every client can do with every server: calls, errors, lists, prompts, resources, cancellation. */
import { expect, test, vi } from 'vitest';
import { describePairs } from '../support/pairs.ts';

describePairs('every pair', (pair) => {
  const { kind, upstream } = pair;

  test('says in its result that a tool failed, and keeps code and message of an error', async () => {
    const soft = await pair.client.call('soft');
    expect(soft.response.result).toMatchObject({ isError: true });
    const { response } = await pair.client.call('fail', { code: 1234, message: 'Mine' });
    expect(response.error).toMatchObject({ code: 1234, message: 'Mine' });
  });

  test.each(['p', 7])('tells progress first, under the token of the client: %j', async (progressToken) => {
    const { notifications, response } = await pair.client.call('progress', { steps: 2 }, undefined, {
      progressToken,
    });
    const tokens = notifications.map(({ params }) => params?.['progressToken']);
    expect(tokens).toEqual([progressToken, progressToken]);
    expect(response.result).toBeDefined();
  });

  test('has the prompts, resources and completions of the server', async () => {
    const prompt = { name: 'up__greet', arguments: { who: 'Ann' } };
    expect(await pair.client.result('prompts/get', prompt)).toMatchObject({
      messages: [{ content: { text: 'Say hello to Ann' } }],
    });
    const uri = 'raw://raw/item/7';
    const read = await pair.client.result('resources/read', { uri });
    expect(read).toMatchObject({ contents: [{ uri }] });
    const ref = { type: 'ref/prompt', name: 'up__greet' };
    const argument = { name: 'who', value: 'ad' };
    expect(await pair.client.result('completion/complete', { ref, argument })).toMatchObject({
      completion: { values: ['ada', 'adele'] },
    });
  });

  test('passes arguments as they were written, and the trace of the caller', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const { response } = await pair.client.call('echo', { n: 1.5, text: 'é' }, undefined, { traceparent });
    expect(response.result?.['content']).toEqual([{ type: 'text', text: '{"n":1.5,"text":"é"}' }]);
    const sent = pair.server.seen().findLast(({ raw }) => raw?.includes('"echo"'));
    expect(sent?.raw).toContain(traceparent);
  });

  test('cancels a call at the server, in the way of its era', async () => {
    const before = pair.server.seen().filter(({ event }) => event === 'cancelled').length;
    const opened = await pair.client.open('tools/call', {
      name: 'up__progress',
      arguments: { steps: 100, everyMs: 100 },
      _meta: { progressToken: 'p' },
    });
    await opened.next();
    await opened.cancel();
    const cancelled = await vi.waitFor(
      () => {
        const [last] = pair.server
          .seen()
          .filter(({ event }) => event === 'cancelled')
          .slice(before);
        if (last === undefined) throw new Error('it goes on');
        return last;
      },
      { timeout: 30_000 },
    );
    const isClosed = upstream.era === 'modern' && upstream.transport === 'http';
    expect(cancelled.via, kind.name).toBe(isClosed ? 'close' : 'notification');
  });
});
