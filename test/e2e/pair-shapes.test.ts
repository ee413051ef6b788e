/** What clients of all revisions get of servers of both eras: lists, results and errors in the shapes that they know. */
import { expect, test } from 'vitest';
import { describePairs } from '../support/pairs.ts';

type Json = Readonly<Record<string, unknown>>;

describePairs(
  'what a server has',
  (pair) => {
    const { kind, upstream } = pair;
    const isModern = kind.version === '2026-07-28';
    const isStructured = kind.version >= '2025-06-18';

    const everyPage = async (method: string, key: string): Promise<Json[]> => {
      const items: Json[] = [];
      for (let cursor: unknown; ; ) {
        const params = cursor === undefined ? {} : { cursor };
        const page = await pair.client.result(method, params);
        items.push(...(page[key] as Json[]));
        cursor = page['nextCursor'];
        if (cursor === undefined) return items;
        expect((page[key] as Json[]).length).toBeLessThanOrEqual(4);
      }
    };

    test('is listed in pages, each item once', async () => {
      const tools = (await everyPage('tools/list', 'tools')).map(({ name }) => name);
      expect(new Set(tools).size).toBe(tools.length);
      expect(tools).toEqual(expect.arrayContaining(['up__echo', 'up__shaped', 'up__header']));
      const resources = await everyPage('resources/list', 'resources');
      expect(resources.map(({ uri }) => uri)).toEqual(['raw://raw/one', 'raw://raw/two']);
    });

    test('has a list with cache hints and a type, or without, as the revision has them', async () => {
      const result = await pair.client.result('prompts/list');
      const hints = ['resultType', 'ttlMs', 'cacheScope'].filter((key) => key in result);
      expect(hints).toEqual(isModern ? ['resultType', 'ttlMs', 'cacheScope'] : []);
    });

    test('refuses a cursor that it never gave', async () => {
      const { response } = await pair.client.run('tools/list', { cursor: 'made-up' });
      expect(response.error?.code).toBe(-32602);
    });

    test('is described by schemas that the revision knows', async () => {
      const tools = await everyPage('tools/list', 'tools');
      const schemaOf = (name: string): unknown =>
        tools.find((tool) => tool['name'] === `up__${name}`)?.['outputSchema'];
      if (!isStructured) {
        expect([schemaOf('shaped'), schemaOf('listed')]).toEqual([undefined, undefined]);
        return;
      }
      const properties = { n: { type: 'integer' }, any: isModern ? true : {} };
      expect(schemaOf('shaped')).toEqual({ type: 'object', properties });
      if (upstream.era === 'legacy') return;
      const own = { type: 'array', items: { $ref: '#/$defs/n' }, $defs: { n: { type: 'integer' } } };
      const result = { ...own, items: { $ref: '#/properties/result/$defs/n' } };
      expect(schemaOf('listed')).toEqual(
        isModern ? own : { type: 'object', properties: { result }, required: ['result'] },
      );
    });

    test('answers structured content that the revision knows', async () => {
      const { response } = await pair.client.call('shaped');
      expect(response.result?.['structuredContent']).toEqual(isStructured ? { n: 1 } : undefined);
      expect(response.result?.['content']).toEqual([{ type: 'text', text: '{"n":1}' }]);
      expect('resultType' in (response.result ?? {})).toBe(isModern);
    });

    test.runIf(upstream.era === 'modern')('wraps structured content that is no object', async () => {
      const { response } = await pair.client.call('listed');
      const wrapped = isStructured ? { result: [1, 2] } : undefined;
      expect(response.result?.['structuredContent']).toEqual(isModern ? [1, 2] : wrapped);
    });

    test('links to resources, or says so in words', async () => {
      const { response } = await pair.client.call('media');
      const [link, sound] = (response.result?.['content'] ?? []) as Json[];
      expect(link).toMatchObject(
        isStructured
          ? { type: 'resource_link', uri: 'raw://raw/one' }
          : { type: 'text', text: 'one: raw://raw/one' },
      );
      expect(sound?.['type']).toBe('audio');
    });

    test.runIf(upstream.era === 'legacy')('runs as a task what its server has only as one', async () => {
      const tools = await everyPage('tools/list', 'tools');
      const job = tools.find((tool) => tool['name'] === 'up__job');
      expect(job).toBeDefined();
      expect(job).not.toHaveProperty('execution');
      const { response } = await pair.client.call('job');
      expect(response.result?.['content']).toEqual([{ type: 'text', text: 'The job is done' }]);
    });

    test('has a missing resource, an unknown tool and an unknown method as errors', async () => {
      const missing = await pair.client.run('resources/read', { uri: 'raw://raw/none' });
      expect([-32602, -32002]).toContain(missing.response.error?.code);
      const { response } = await pair.client.call('none');
      expect(response.error?.code).toBe(-32602);
      const unknown = await pair.client.run('tools/none');
      expect(unknown.response.error?.code).toBe(-32601);
    });

    test.runIf(upstream.transport === 'http' && upstream.era === 'legacy')(
      'is there again when its server has forgotten the session: the call that met it is sent again, what was watched is told of',
      async () => {
        const subscribed = (): number =>
          pair.server.seen().filter(({ method }) => method === 'resources/subscribe').length;
        const before = subscribed();
        const stream = await pair.client.hear(['raw://raw/one']);
        await pair.client.call('forget');
        // Each process meets it, whichever of them watches.
        for (let process = 0; process < kind.processes; process++) {
          const { response } = await pair.client.call('echo', { a: 1 });
          expect(response.result?.['content']).toEqual([{ type: 'text', text: '{"a":1}' }]);
        }
        expect(subscribed() - before).toBeGreaterThan(1);
        stream.close();
      },
    );
  },
  (up) => ({ servers: { up }, lists: { pageSize: 4 } }),
);
