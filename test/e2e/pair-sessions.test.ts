/** Sessions of older revisions over HTTP, in front of servers of both eras: streams that break, batches, ends. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeEras } from '../support/eras.ts';
import { startGateway } from '../support/gateway.ts';
import type { Message } from '../support/modern-client.ts';
import { startRotating } from '../support/rotating.ts';

interface Event {
  readonly id: string | undefined;
  readonly data: string;
}

/** Reads events one by one, with their ids. */
function eventsOf(response: Response): { next(): Promise<Event | undefined>; close(): Promise<void> } {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    async next() {
      for (;;) {
        const at = text.indexOf('\n\n');
        if (at >= 0) {
          const event = text.slice(0, at);
          text = text.slice(at + 2);
          const data = /^data: ?(.*)$/m.exec(event)?.[1];
          if (data !== undefined) return { id: /^id: (.*)$/m.exec(event)?.[1], data };
          continue;
        }
        const read = await reader?.read();
        if (read?.value === undefined) return undefined;
        text += read.value;
      }
    },
    close: async () => reader?.cancel(),
  };
}

const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

interface Served {
  readonly url: string;
  stop(): Promise<void>;
}

const alone = { by: 'one process', startServed: (config: object): Promise<Served> => startGateway(config) };
const inTurn = {
  by: 'three in turn',
  startServed: (config: object): Promise<Served> => startRotating(config),
};

describeEras('a session', ({ start, transport }) => {
  // Several processes have one child together, which is another's to run.
  describe.each(transport === 'stdio' ? [alone] : [alone, inTurn])('with $by', ({ startServed }) => {
    let gateway: Served;
    beforeAll(async () => {
      const upstream = await start();
      gateway = await startServed({ servers: { up: upstream.server } });
    });
    afterAll(async () => gateway?.stop());

    const post = (headers: Record<string, string>, body: unknown): Promise<Response> =>
      fetch(gateway.url, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) });

    async function begin(version: string): Promise<Record<string, string>> {
      const clientInfo = { name: 'session', version: '1' };
      const params = { protocolVersion: version, capabilities: {}, clientInfo };
      const opened = await post({}, { jsonrpc: '2.0', id: 0, method: 'initialize', params });
      expect(((await opened.json()) as Message).result?.['protocolVersion']).toBe(version);
      const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
      return version < '2025-06-18' ? session : { ...session, 'mcp-protocol-version': version };
    }

    const progress = (id: number, steps: number) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: {
        name: 'up__progress',
        arguments: { steps, everyMs: 20 },
        _meta: { progressToken: 'p' },
      },
    });

    describe.each(['2025-11-25', '2025-06-18', '2025-03-26'])('of %s', (version) => {
      test('goes on with a stream that broke where it was, and misses nothing', async () => {
        const headers = await begin(version);
        const events = eventsOf(await post(headers, progress(1, 8)));
        let last = await events.next();
        // Begins with an empty event from 2025-11-25 on.
        expect(last?.data === '').toBe(version >= '2025-11-25');
        if (last?.data === '') last = await events.next();
        await events.close();
        const resumed = eventsOf(
          await fetch(gateway.url, {
            headers: { ...headers, accept: 'text/event-stream', 'last-event-id': last?.id ?? '' },
          }),
        );
        const rest: Message[] = [];
        for (let event = await resumed.next(); event !== undefined; event = await resumed.next())
          rest.push(JSON.parse(event.data) as Message);
        const values = rest.flatMap(({ params }) => (params === undefined ? [] : [params['progress']]));
        expect(values).toEqual([2, 3, 4, 5, 6, 7, 8]);
        expect(rest.at(-1)).toMatchObject({ id: 1, result: { content: [{ text: 'Took 8 steps' }] } });
      });

      test('is told the end of a stream again that broke unseen, after all of it was written', async () => {
        const headers = await begin(version);
        const events = eventsOf(await post(headers, progress(1, 2)));
        const told: Event[] = [];
        for (let event = await events.next(); event !== undefined; event = await events.next())
          if (event.data !== '') told.push(event);
        const resumed = eventsOf(
          await fetch(gateway.url, {
            headers: { ...headers, accept: 'text/event-stream', 'last-event-id': told[0]?.id ?? '' },
          }),
        );
        const again: Event[] = [];
        for (let event = await resumed.next(); event !== undefined; event = await resumed.next())
          again.push(event);
        expect(again).toEqual(told.slice(1));
        expect(JSON.parse(again.at(-1)?.data ?? '')).toMatchObject({ id: 1, result: {} });
      });

      test('is over with DELETE, which cancels what is open: 404 from then on', async () => {
        const headers = await begin(version);
        const events = eventsOf(await post(headers, progress(1, 500)));
        await events.next();
        const deleted = await fetch(gateway.url, { method: 'DELETE', headers });
        expect(deleted.status).toBeLessThan(300);
        while ((await events.next()) !== undefined);
        const after = await post(headers, { jsonrpc: '2.0', id: 2, method: 'ping' });
        expect(after.status).toBe(404);
        const stream = await fetch(gateway.url, { headers: { ...headers, accept: 'text/event-stream' } });
        expect(stream.status).toBe(404);
      });

      test('has batches where its revision has them', async () => {
        const headers = await begin(version);
        const echo = (id: number) => ({
          jsonrpc: '2.0',
          id,
          method: 'tools/call',
          params: { name: 'up__echo', arguments: { id } },
        });
        const answer = await post(headers, [echo(1), { jsonrpc: '2.0', id: 2, method: 'ping' }, echo(3)]);
        expect(answer.status).toBe(version === '2025-03-26' ? 200 : 400);
        if (version !== '2025-03-26') return;
        const replies = (await answer.json()) as Message[];
        expect(replies.map(({ id }) => id).toSorted()).toEqual([1, 2, 3]);
      });
    });

    test('that is unknown is 404, one that is missing 400', async () => {
      const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
      expect((await post({ 'mcp-session-id': 'made-up' }, ping)).status).toBe(404);
      expect((await post({ 'mcp-protocol-version': '2025-06-18' }, ping)).status).toBe(400);
    });
  });
});
