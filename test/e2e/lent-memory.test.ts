/** The memory that long answers are held in comes back on every way that an answer can take, and only then is another's. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ChannelGateway, startChannelGateway } from '../support/channel-gateway.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type LegacySession, openSession } from '../support/legacy-session.ts';
import { type LentMemory, watchLent } from '../support/lent.ts';
import { type Answer, callTool, type Message, openCall } from '../support/modern-client.ts';
import {
  type Asked,
  legacyScript,
  modernScript,
  type Scripted,
  startScript,
  tool,
} from '../support/scripted.ts';

/** Different at every place from that of its neighbours, from 17 KB to 200 KB. */
const said = (n: number): string => `${String(n).padStart(7, '0')}-`.repeat(2_200 + (n % 12) * 2_000);

type Form =
  | 'plain'
  | 'spaced'
  | 'toolError'
  | 'error'
  | 'asks'
  | 'structured'
  | 'torn'
  | 'latin'
  | 'noJson'
  | 'slow'
  | 'held';

const content = (n: number): string => JSON.stringify([{ type: 'text', text: said(n) }]);
const plain = (result: string) => (id: unknown) =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{${result}}}`;

/** An answer about `n`, with the id of its request. */
const answers: Record<Form, (n: number) => (id: unknown) => string> = {
  plain: (n) => plain(`"content":${content(n)},"resultType":"complete"`),
  spaced: (n) => (id) =>
    `{ "id": ${JSON.stringify(id)}, "jsonrpc": "2.0", "result": { "content": ${content(n)} } }`,
  toolError: (n) => plain(`"content":${content(n)},"isError":true`),
  error: (n) => (id) =>
    `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-31000,"message":"no","data":"${said(n)}"}}`,
  asks: (n) =>
    plain(
      `"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"${said(n)}","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"s"`,
    ),
  structured: (n) => plain(`"content":${content(n)},"structuredContent":["${n}"]`),
  torn: (n) => plain(`"content":${content(n)}`),
  slow: (n) => plain(`"content":${content(n)}`),
  held: (n) => plain(`"content":${content(n)}`),
  latin: (n) => plain(`"content":${content(n)},"x":"\u00e4"`),
  noJson: (n) => () => `[${content(n)}]`,
};

/** What finishes the answers that wait for that. */
const held: (() => void)[] = [];

function answer({ id, params, response }: Asked): undefined {
  const { n, form } = params['arguments'] as { n: number; form: Form };
  const bytes = Buffer.from(answers[form](n)(id), 'latin1');
  // Only of an answer that says its length is known how much memory it needs.
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length });
  if (form === 'torn') response.write(bytes.subarray(0, 12_000), () => response.destroy());
  else if (form === 'slow' || form === 'held') response.write(bytes.subarray(0, 12_000));
  else response.end(bytes);
  if (form === 'held') held.push(() => response.end(bytes.subarray(12_000)));
}

const script = {
  'tools/list': () => ({ tools: [tool('say')] }),
  'tools/call': answer,
};

let upstreams: Scripted[];
let servers: Record<string, { url: string }>;
let gateway: Gateway;
let session: LegacySession;
let lent: LentMemory;

beforeAll(async () => {
  upstreams = await Promise.all([
    startScript(modernScript(script)),
    startScript(modernScript(script)),
    startScript(legacyScript(script)),
    startScript(legacyScript(script)),
  ]);
  servers = Object.fromEntries(upstreams.map(({ url }, at) => [`up${at}`, { url }]));
  gateway = await startGateway({ servers });
  session = await openSession(gateway.url, { elicitation: {} });
});
afterAll(async () => {
  await gateway?.stop();
  for (const upstream of upstreams ?? []) await upstream.stop();
});
beforeEach(() => {
  lent = watchLent();
});
afterEach(() => {
  lent.restore();
  expect(lent.faults).toEqual([]);
});

const ended = (): Promise<void> => expect.poll(() => lent.out()).toBe(0);

/** Whether this is what the server said to `n`, as far as one can tell from text. */
function expectSaid(message: Message | undefined, n: number): void {
  const text = JSON.stringify(message);
  expect(text.includes(said(n)), `${text.slice(0, 200)} instead of ${n}`).toBe(true);
}

const asking = {
  meta: { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } },
} as const;
const whole: readonly Form[] = ['plain', 'spaced', 'toolError', 'error', 'structured'];
const broken: readonly Form[] = ['torn', 'latin', 'noJson'];

describe.each([
  ['modern', 0],
  ['legacy', 2],
] as const)('the memory of a long answer of a %s server', (era, up) => {
  const name = `up${up}__say`;

  test.each(era === 'modern' ? [...whole, 'asks' as const] : whole)(
    'comes back when a modern client has taken it, be it %s',
    async (form) => {
      for (let n = 0; n < 6; n++)
        expectSaid((await callTool(gateway.url, name, { n, form }, asking)).response, n);
      expect(lent.taken()).toBe(6);
      await ended();
    },
  );

  test.each(whole)('comes back when a legacy client has taken it, be it %s', async (form) => {
    for (let n = 0; n < 6; n++)
      expectSaid((await session.ask('tools/call', { name, arguments: { n, form } })).response, n);
    expect(lent.taken()).toBe(6);
    await ended();
  });

  test.each(broken)('comes back where it is of no use: %s', async (form) => {
    for (let n = 0; n < 6; n++)
      expect((await callTool(gateway.url, name, { n, form })).response?.error?.code).toBeGreaterThan(5_000);
    expect(lent.taken()).toBe(6);
    await ended();
  });

  test('comes back where the client goes away before it is whole', async () => {
    const leave = new AbortController();
    const calls = Array.from({ length: 6 }, (_, n) =>
      openCall(gateway.url, 'tools/call', { name, arguments: { n, form: 'slow' } }, { signal: leave.signal }),
    );
    await expect.poll(() => lent.taken()).toBe(6);
    expect(lent.out()).toBe(6);
    leave.abort();
    await Promise.allSettled(calls);
    await ended();
  });
});

test('the memory of a question comes back once a legacy client is asked', async () => {
  const opened = await session.open('tools/call', { name: 'up0__say', arguments: { n: 3, form: 'asks' } });
  expectSaid(await opened.next(), 3);
  expect(lent.taken()).toBe(1);
  await ended();
  opened.close();
});

test('the memory of a long list comes back when it was read', async () => {
  const many = await startScript(
    modernScript({
      'tools/list': ({ id, response }) => {
        const tools = Array.from({ length: 300 }, (_, at) =>
          tool(`t${at}`, { description: 'x'.repeat(100) }),
        );
        const text = JSON.stringify({
          jsonrpc: '2.0',
          id,
          result: { resultType: 'complete', tools, ttlMs: 0, cacheScope: 'public' },
        });
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
        response.end(text);
      },
    }),
  );
  const other = await startGateway({ servers: { many: many.server } });
  const { response } = await openCall(other.url, 'tools/list').then(({ done }) => done);
  expect(response?.result?.['tools']).toHaveLength(300);
  expect(lent.taken()).toBeGreaterThan(0);
  await ended();
  await other.stop();
  await many.stop();
});

test('the memory of an answer to a modern client on stdio comes back', async () => {
  const channel: ChannelGateway = await startChannelGateway({ servers });
  await expect
    .poll(async () => JSON.stringify(await channel.client.modern(`list${Math.random()}`, 'tools/list')))
    .toContain('up0__say');
  const before = lent.taken();
  for (const [n, form] of whole.entries())
    expectSaid(await channel.client.modern(n, 'tools/call', { name: 'up0__say', arguments: { n, form } }), n);
  expect(lent.taken() - before).toBe(whole.length);
  await ended();
  await channel.stop();
});

test('all servers of a gateway together keep no more of it than 16 MiB', async () => {
  // Each takes 256 KiB, and all are out at once.
  const count = 100;
  const burst = async (): Promise<void> => {
    const before = lent.taken();
    const calls = Array.from({ length: count }, (_, at) =>
      callTool(gateway.url, `up${at % upstreams.length}__say`, { n: 5 + 12 * at, form: 'held' }),
    );
    await expect.poll(() => lent.taken() - before).toBe(count);
    for (const finish of held.splice(0)) finish();
    for (const [at, { response }] of (await Promise.all(calls)).entries()) expectSaid(response, 5 + 12 * at);
    await ended();
  };
  await burst();
  await burst();
  expect(lent.stores()).toBe(1);
  expect(lent.takenAgain()).toBeLessThanOrEqual(64);
});

/** One of many calls to any server, by a client of either era, which may leave in the middle. */
async function oneOfMany(n: number): Promise<void> {
  const form = whole[n % whole.length] as Form;
  const name = `up${n % upstreams.length}__say`;
  const args = { n, form };
  if (n % 7 === 3) {
    const leave = new AbortController();
    const call = openCall(
      gateway.url,
      'tools/call',
      { name, arguments: args },
      { id: n, signal: leave.signal },
    );
    const gone = call.then((opened) => opened.done).catch(() => undefined);
    await sleep(n % 11);
    leave.abort();
    await gone;
    return;
  }
  const params = { name, arguments: args };
  const answered: Answer =
    n % 2 === 0
      ? await session.ask('tools/call', params)
      : await callTool(gateway.url, name, args, { id: n });
  expectSaid(answered.response, n);
}

test('no answer gets into another, whatever becomes of the others', async () => {
  for (let from = 0; from < 1_200; from += 60)
    await Promise.all(Array.from({ length: 60 }, (_, at) => oneOfMany(from + at)));
  expect(lent.taken()).toBeGreaterThan(800);
  // What a client left behind when its socket had it may be the collector's.
  await expect.poll(() => lent.out()).toBeLessThan(200);
});
