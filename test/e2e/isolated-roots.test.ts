/** The roots tool of the reference server, which asks outside any call and keeps what it heard. */
import { createRequire } from 'node:module';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { hashOfKey } from '../../src/config/key-hash.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { openSession } from '../support/legacy-session.ts';
import { type Answer, call, resultOf, textOf } from '../support/modern-client.ts';

const everything = path.join(
  path.dirname(
    createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json'),
  ),
  'dist/index.js',
);
const command = [process.execPath, everything, 'stdio'];
const tool = 'up__get-roots-list';

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function gatewayOf(server: object, config: object = {}): Promise<Gateway> {
  const gateway = await startGateway({ servers: { up: { command, ...server } }, ...config });
  endings.push(() => gateway.stop());
  return gateway;
}

const rootsOf = (folder: string) => ({ roots: [{ uri: `file:///${folder}`, name: folder }] });

const key = 'key-of-ann';
const keys = { ann: hashOfKey(key), bob: hashOfKey('key-of-bob') };
const asAnn = { authorization: `Bearer ${key}` };

/** A modern client that answers with these roots what it is asked; counts how often. */
async function modern(gateway: Gateway, roots: object): Promise<{ text: string; asked: number }> {
  const ask = (params: object): Promise<Answer> =>
    call(
      gateway.url,
      'tools/call',
      { name: tool, arguments: {}, ...params },
      {
        headers: asAnn,
        meta: { 'io.modelcontextprotocol/clientCapabilities': { roots: {} } },
      },
    );
  let answer = await ask({});
  for (let asked = 0; ; asked++) {
    const result = resultOf(answer);
    if (result['resultType'] !== 'input_required') return { text: textOf(answer), asked };
    const requests = result['inputRequests'] as Readonly<Record<string, { readonly method: string }>>;
    expect(Object.values(requests).map(({ method }) => method)).toEqual(['roots/list']);
    const inputResponses = Object.fromEntries(Object.keys(requests).map((name) => [name, roots]));
    answer = await ask({ inputResponses, requestState: result['requestState'] });
  }
}

/** Asks what the server knows without having roots of its own. */
const rootless = async (gateway: Gateway, headers: Record<string, string> = asAnn): Promise<string> =>
  textOf(await call(gateway.url, 'tools/call', { name: tool, arguments: {} }, { headers }));

/** Until the server has asked outside any call, which it does some while after it was started. */
const untilItHasRoots = (gateway: Gateway, folder: string): Promise<void> =>
  expect.poll(() => rootless(gateway)).toContain(`file:///${folder}`);

test('a shared server that asks for roots gets those of the config, whoever calls', async () => {
  const gateway = await gatewayOf({ roots: ['file:///configured'] }, { keys });
  expect(await modern(gateway, rootsOf('of-ann'))).toMatchObject({ asked: 0 });
  await untilItHasRoots(gateway, 'configured');
  expect((await modern(gateway, rootsOf('of-ann'))).text).not.toContain('of-ann');
});

test('an isolated server gets the roots of its modern caller, who is asked once', async () => {
  const gateway = await gatewayOf({ isolation: 'caller', roots: ['file:///configured'] }, { keys });
  await untilItHasRoots(gateway, 'configured');
  const first = await modern(gateway, rootsOf('of-ann'));
  expect(first.text).toContain('file:///of-ann');
  expect(first.asked).toBe(1);
  const second = await modern(gateway, rootsOf('of-ann'));
  expect(second.text).toContain('file:///of-ann');
  expect(second.asked).toBe(0);
  expect(await rootless(gateway, { authorization: 'Bearer key-of-bob' })).not.toContain('of-ann');
});

test('an isolated server that asks in the middle of its first call gets the roots of its caller', async () => {
  const gateway = await gatewayOf({ isolation: 'caller' }, { keys });
  const { text } = await modern(gateway, rootsOf('of-ann'));
  expect(text).toContain('file:///of-ann');
});

test('an isolated server gets the roots of its legacy caller, and those that it has later', async () => {
  const gateway = await gatewayOf({ isolation: 'caller' });
  const session = await openSession(gateway.url, { roots: { listChanged: true } });
  const known = async (roots: object): Promise<string> => {
    const open = await session.open('tools/call', { name: tool, arguments: {} });
    for (;;) {
      const message = await open.next();
      if (message.method === 'roots/list') await session.answer(message.id, roots);
      else if (message.result !== undefined) return JSON.stringify(message.result);
    }
  };
  expect(await known(rootsOf('first'))).toContain('file:///first');
  await session.tell('notifications/roots/list_changed');
  await expect.poll(() => known(rootsOf('second'))).toContain('file:///second');
});
