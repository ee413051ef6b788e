/** Looks for secrets that are planted wherever one can be, wherever the gateway says something. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config/parse.ts';
import { createFolder, run } from '../cli/program.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { openSession } from '../support/legacy-session.ts';
import { type Answer, type CallOptions, call, callTool } from '../support/modern-client.ts';
import {
  configured,
  environment,
  failingTools,
  type Planted,
  plant,
  probesOf,
  said,
  speakingTools,
  userInfo,
} from './fixtures/canaries.ts';

let planted: Planted;
let gateway: Gateway;
/** What operators see, by where. */
const shown = new Map<string, string>();
/** What the gateway itself answered clients, and what servers said and it handed on. */
const own: string[] = [];
const inBand: string[] = [];
let session = '';

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
const whole = ({ headers, raw }: Answer): string => `${JSON.stringify(headers)}\n${raw.toString('utf8')}`;

async function askAll({ url }: Gateway): Promise<void> {
  const ann: CallOptions = { headers: bearer(said.key) };
  const args = { word: said.argument };
  const keep = async (into: string[], answer: Promise<Answer>): Promise<void> => {
    into.push(await answer.then(whole, (error: Error) => error.message));
  };
  for (const name of failingTools) await keep(own, callTool(url, `up__${name}`, args, ann));
  for (const name of speakingTools) await keep(inBand, callTool(url, `up__${name}`, args, ann));
  await keep(inBand, call(url, 'resources/read', { uri: `raw://up/x?token=${said.uri}` }, ann));
  await keep(own, callTool(url, said.unknownName, args, ann));
  await keep(own, call(url, said.method, { arguments: args }, ann));
  await keep(own, call(url, 'tools/call', {}, { ...ann, body: `{"${said.argument}": ` }));
  for (const name of ['refusing', 'unreachable', 'gone', 'absent'])
    await keep(own, callTool(url, `${name}__tool`, args, ann));
  for (const method of ['server/discover', 'tools/list', 'resources/list'])
    await keep(own, call(url, method, {}, ann));
  await keep(inBand, callTool(url, 'child__echo', args, ann));
  await keep(own, callTool(url, 'child__die', args, ann));
}

/** Requests that are let in by nothing. */
async function knock({ url, admin }: Gateway): Promise<void> {
  const refused = [
    bearer(said.wrongKey),
    { authorization: `Basic ${said.basic}` },
    { authorization: said.wrongKey },
    { authorization: `Bearer ${said.wrongKey} ${said.basic}` },
  ];
  for (const headers of refused) {
    const answer = await callTool(url, 'up__good', {}, { headers });
    expect(answer.status).toBe(401);
    own.push(whole(answer));
    const scrape = await fetch(`${admin}/metrics`, { headers });
    expect(scrape.status).toBe(401);
    shown.set(`/metrics for ${JSON.stringify(headers).length}`, await scrape.text());
  }
}

async function passThrough({ url }: Gateway): Promise<void> {
  const { origin } = new URL(url);
  for (const name of ['refusing', 'unreachable']) {
    const at = `${origin}/servers/${name}/files/x?token=${said.uri}`;
    own.push(await (await fetch(at, { headers: bearer(said.key) })).text());
  }
}

async function speakLegacy({ url }: Gateway): Promise<void> {
  const legacy = await openSession(url, {}, bearer(said.key));
  session = legacy.id;
  inBand.push(whole(await legacy.ask('tools/call', { name: 'up__bad', arguments: { word: said.argument } })));
  own.push(whole(await legacy.ask('tools/call', { name: 'up__status', arguments: { word: said.argument } })));
  own.push(whole(await legacy.ask('resources/subscribe', { uri: `raw://up/x?token=${said.uri}` })));
  await legacy.end();
}

beforeAll(async () => {
  planted = await plant();
  gateway = await startGateway(planted.config, { level: 'trace', env: { ...process.env, ...environment } });
  await askAll(gateway);
  await knock(gateway);
  await passThrough(gateway);
  await speakLegacy(gateway);
  const { admin, url } = gateway;
  const page = async (at: string): Promise<string> =>
    (await fetch(at, { headers: bearer(configured.metricsToken) })).text();
  shown.set('/metrics', await page(`${admin}/metrics`));
  for (const path of ['/readyz', '/healthz', '/']) shown.set(path, await page(admin + path));
  const { origin } = new URL(url);
  for (const path of ['/readyz', '/healthz']) shown.set(`${path} for clients`, await page(origin + path));
  await gateway.stop();
  shown.set('the log', gateway.lines.map((line) => JSON.stringify(line)).join('\n'));
  const { file, folder, remove } = createFolder(planted.config);
  const checked = await run(['check', '--json', '-c', file], { cwd: folder, env: environment });
  remove();
  shown.set('check --json', checked.stdout);
  shown.set('the log of check', checked.stderr);
}, 60_000);
afterAll(() => planted?.stop());

const values = (canaries: Readonly<Record<string, string>>): [string, string][] =>
  Object.entries(canaries).flatMap(([name, value]) =>
    probesOf(value).map((probe): [string, string] => [name, probe]),
  );

/** Where a canary is to be seen. */
const sightings = (probe: string, where: Iterable<readonly [string, string]>): string[] =>
  [...where].filter(([, text]) => text.includes(probe)).map(([place]) => place);

describe('a secret of the config', () => {
  test.each(values(configured))('%s (%s) is shown to no operator', (_, probe) => {
    expect(sightings(probe, shown)).toEqual([]);
  });

  test.each(values(configured))('%s (%s) is in no answer of the gateway itself', (_, probe) => {
    expect(
      sightings(
        probe,
        own.map((text) => [text, text] as const),
      ),
    ).toEqual([]);
  });
});

describe('what callers and servers say', () => {
  test.each(values({ ...said, userInfo }))('%s (%s) is shown to no operator', (_, probe) => {
    expect(sightings(probe, shown)).toEqual([]);
  });

  test.each(['key', 'wrongKey', 'basic'] as const)('%s is never said back to a client', (name) => {
    expect(
      sightings(
        said[name],
        [...own, ...inBand].map((text) => [text, text] as const),
      ),
    ).toEqual([]);
  });

  test('is not shown by the id of its session, either', () => {
    expect(session.length).toBeGreaterThan(40);
    expect(sightings(session, shown)).toEqual([]);
  });
});

describe('the canaries', () => {
  test('were sent, and came back where servers repeat them', () => {
    const heard = inBand.join('\n');
    const repeated = [configured.authorization, configured.apiKey, configured.header, configured.envFilled];
    for (const value of [...repeated, said.argument, said.result, said.toolError, said.rpcError])
      expect(heard).toContain(value);
    expect(own.join('\n')).toContain('it answered 500');
    expect(own.join('\n')).toContain('it answered 403');
  });

  test('were in the log but for the mask', () => {
    const log = shown.get('the log') ?? '';
    for (const before of ['my secret is ', 'dying of ', 'started with ', 'bye ']) {
      expect(log).toContain(before);
      expect(log).toMatch(new RegExp(`${before}[^"]*\\[masked\\]`));
    }
    for (const tool of [...failingTools, ...speakingTools]) expect(log).toContain(`up__${tool}`);
    expect(shown.get('check --json')).toContain('[masked]');
    expect(shown.get('/readyz')).toContain('[masked]');
  });
});

test('A password in a URL is refused without being shown', () => {
  const text = JSON.stringify({
    servers: { up: { url: `http://bob:${configured.apiKey}@example.com/mcp` } },
  });
  const parse = (): unknown => parseConfig(text, { file: '/config.yaml', env: {}, readSecretFile: () => '' });
  let message = '';
  try {
    parse();
  } catch (error) {
    message = String(error) + JSON.stringify(error);
  }
  expect(message).toContain('servers.up.url');
  expect(message).not.toContain(configured.apiKey);
});
