import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, test } from 'vitest';
import { KeyWatch } from '../../src/upstream/key-watch.ts';
import { type Asked, modernScript, startScript } from '../support/scripted.ts';
import { closeAll, openOne } from './opened.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const watch = (): KeyWatch =>
  new KeyWatch({
    kind: 'resources',
    upstream: 'up',
    timeoutMs: 1000,
    random: Math.random,
    now: () => 0,
    listening: () => undefined,
    missed: () => undefined,
  });

/** So many of the same server, each in place of the one before. */
function line(count: number): KeyWatch[] {
  const watches = Array.from({ length: count }, watch);
  watches.reduce((before, after) => {
    after.succeed(before);
    return after;
  });
  return watches;
}

describe('a watch that takes the place of another', () => {
  test('is told what is asked of the first, however many were between', async () => {
    const [first, , last] = line(3);
    await first?.add('x:1');
    expect([first?.isWatched, last?.isWatched]).toEqual([false, true]);
    first?.remove('x:1');
    expect(last?.isWatched).toBe(false);
  });

  test('takes over what is watched, until whoever asked the first is gone', async () => {
    const [first, second] = [watch(), watch()];
    await first.add('x:1');
    second.succeed(first);
    expect(second.isWatched).toBe(true);
    first.remove('x:1');
    expect([first.isWatched, second.isWatched]).toEqual([false, false]);
  });

  test('is not kept alive by the first once another has taken its own', async () => {
    const [first, ...between] = line(20);
    const last = between.pop();
    const refs = between.map((one) => new WeakRef(one));
    between.length = 0;
    // What a WeakRef was made of lives to the end of the turn.
    await turn();
    collect();
    await turn();
    collect();
    expect(refs.filter((ref) => ref.deref() !== undefined).length).toBeLessThan(2);
    await first?.add('x:1');
    expect(last?.isWatched).toBe(true);
  });
});

describe('resources that are watched at the same time', () => {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    await closeAll();
    for (const stop of stops.splice(0)) await stop();
  });

  /** A server that takes a listen when it is told to: each by how many resources it is for. */
  async function listening() {
    const listens = new Map<number, { take(): void; isOver: boolean }>();
    const hold = ({ id, params, response }: Asked): void => {
      const { resourceSubscriptions } = params['notifications'] as { resourceSubscriptions: string[] };
      const listen = {
        take: () => {
          const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
          const told = { method: 'notifications/subscriptions/acknowledged', params: { _meta } };
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...told })}\n\n`);
        },
        isOver: false,
      };
      response.on('close', () => {
        listen.isOver = true;
      });
      listens.set(resourceSubscriptions.length, listen);
    };
    const server = await startScript(
      modernScript({ 'subscriptions/listen': hold }, { resources: { subscribe: true } }),
    );
    stops.push(() => server.stop());
    const { upstream, settled } = openOne(server.server);
    await settled();
    const over = (): boolean[] => [1, 2, 3].map((count) => listens.get(count)?.isOver ?? false);
    return { upstream, listens, over };
  }

  test('are watched as soon as the server has taken one listen that is for all of them, and no other is left', async () => {
    const { upstream, listens, over } = await listening();
    const added = ['a:1', 'a:2', 'a:3'].map((uri) => upstream.resources.add(uri));
    await expect.poll(() => listens.size).toBe(3);
    listens.get(3)?.take();
    await Promise.all(added);
    await expect.poll(over).toEqual([true, true, false]);
  });

  test('and are the same are watched for the second that asks no sooner than for the first', async () => {
    const { upstream, listens } = await listening();
    const told: string[] = [];
    const added = ['first', 'second'].map((who) => upstream.resources.add('a:1').then(() => told.push(who)));
    await expect.poll(() => listens.size).toBe(1);
    expect(told).toEqual([]);
    listens.get(1)?.take();
    await Promise.all(added);
    expect(told).toEqual(['first', 'second']);
  });

  test('stay watched by a listen for some of them until the server has taken one that is for more', async () => {
    const { upstream, listens, over } = await listening();
    const added = ['a:1', 'a:2', 'a:3'].map((uri) => upstream.resources.add(uri));
    await expect.poll(() => listens.size).toBe(3);
    listens.get(2)?.take();
    await Promise.all(added.slice(0, 2));
    await expect.poll(over).toEqual([true, false, false]);
    listens.get(3)?.take();
    await Promise.all(added);
    await expect.poll(over).toEqual([true, true, false]);
  });
});
