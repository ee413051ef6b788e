/** What every client is put through; each check is of a client as client.mjs describes it. */
import assert from 'node:assert/strict';
import { rootOfConfig } from './gateway.mjs';

const toolsOfAll = 43;
const textOf = ({ content }) => content.map(({ text = '' }) => text).join('\n');

async function list({ list }) {
  const names = await list();
  assert.equal(names.length, toolsOfAll);
  for (const name of ['everything__echo', 'web__echo', 'memory__read_graph'])
    assert(names.includes(name), name);
}

async function memory({ call }) {
  const entities = [{ name: 'Ada', entityType: 'person', observations: ['wrote notes'] }];
  await call('memory__create_entities', { entities });
  assert.match(textOf(await call('memory__read_graph', {})), /Ada/);
}

const echo =
  (server) =>
  ({ call }) =>
    call(`${server}__echo`, { message: 'grüß dich' }).then((result) =>
      assert.deepEqual(result.content, [{ type: 'text', text: 'Echo: grüß dich' }]),
    );

const structured =
  (server) =>
  async ({ call }) => {
    const { structuredContent } = await call(`${server}__get-structured-content`, { location: 'Chicago' });
    assert.equal(typeof structuredContent.temperature, 'number');
  };

const image =
  (server) =>
  async ({ call }) => {
    const { content } = await call(`${server}__get-tiny-image`, {});
    const found = content.find(({ type }) => type === 'image');
    assert.equal(found.mimeType, 'image/png');
    assert(Buffer.from(found.data, 'base64').subarray(1, 4).equals(Buffer.from('PNG')));
  };

/** Both servers list the same ones, which are the first server's; each also gives one in a result. */
const resource =
  (server) =>
  async ({ call, resources, read }) => {
    const uris = await resources();
    assert(uris.length >= 8, String(uris.length));
    assert.match((await read(uris[0])).contents[0].text, /\S/);
    const { content } = await call(`${server}__get-resource-reference`, {
      resourceType: 'Text',
      resourceId: 1,
    });
    const given = content.find(({ type }) => type === 'resource').resource.uri;
    assert.match((await read(given)).contents[0].text, /Resource 1/);
  };

const prompt =
  (server) =>
  async ({ prompt }) => {
    const { messages } = await prompt(`${server}__args-prompt`, { city: 'Paris' });
    assert.match(messages[0].content.text, /Paris/);
  };

const progress =
  (server) =>
  async ({ call, hearsProgress }) => {
    const heard = [];
    const args = { duration: 0.4, steps: 4 };
    const result = await call(`${server}__trigger-long-running-operation`, args, (value) =>
      heard.push(value),
    );
    assert.match(textOf(result), /completed/);
    // The last one may come with the answer, after which some clients listen no more.
    if (hearsProgress) assert.deepEqual(heard, [1, 2, 3, 4].slice(0, Math.max(3, heard.length)));
    return hearsProgress ? 'ok' : 'ok, shows none';
  };

const error =
  (server) =>
  async ({ call }) => {
    const result = await call(`${server}__get-sum`, { a: 'x', b: 1 });
    assert.equal(result.isError, true);
    assert.match(textOf(result), /expected number/i);
    await assert.rejects(async () => {
      const unknown = await call(`${server}__no-such-tool`, {});
      if (unknown.isError) throw new Error(textOf(unknown));
    }, /no-such-tool/);
  };

const asksForm =
  (server) =>
  async ({ call, asked }) => {
    if (asked === undefined) return '-';
    assert.match(textOf(await call(`${server}__trigger-elicitation-request`, {})), /Ada/);
    assert(asked.includes('form'));
  };

const asksUrl =
  (server) =>
  async ({ call, asked, hasUrls }) => {
    if (asked === undefined || !hasUrls) return '-';
    const url = 'https://example.com/consent';
    assert.match(
      textOf(await call(`${server}__trigger-url-elicitation`, { url })),
      /accept|consent|complet/i,
    );
    assert(asked.includes(`url ${url}`), asked.join());
  };

const asksUrlByError =
  (server) =>
  async ({ call, asked, hasUrls, retriesUrls }) => {
    if (asked === undefined || !hasUrls || !retriesUrls) return '-';
    const args = { url: `https://example.com/${server}/error`, errorPath: true };
    assert.match(textOf(await call(`${server}__trigger-url-elicitation`, args)), /accept|consent|complet/i);
  };

const asksSampling =
  (server) =>
  async ({ call, asked, hasSampling }) => {
    if (asked === undefined || !hasSampling) return '-';
    const args = { prompt: 'say it', maxTokens: 10 };
    assert.match(textOf(await call(`${server}__trigger-sampling-request`, args)), /a sampled answer/);
    assert(asked.includes('sampling'));
  };

const roots =
  (server) =>
  async ({ call }) => {
    const text = textOf(await call(`${server}__get-roots-list`, {}));
    assert(text.includes(rootOfConfig), text);
  };

const ofServer = {
  echo,
  image,
  structured,
  resource,
  prompt,
  progress,
  error,
  'form elicitation': asksForm,
  'url elicitation': asksUrl,
  'url by -32042': asksUrlByError,
  sampling: asksSampling,
  'roots of the config': roots,
};

/** By name, in the order of the table. A check resolves with a note, or nothing where all is well. */
export const checks = {
  'list of all tools': list,
  memory,
  ...Object.fromEntries(
    Object.entries(ofServer).flatMap(([name, check]) => [
      [`${name} (stdio)`, check('everything')],
      [`${name} (HTTP)`, check('web')],
    ]),
  ),
};
