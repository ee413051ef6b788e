import { describe, expect, test } from 'vitest';
import { fetchList, type PageLimits } from '../../src/catalog/pages.ts';
import { scanUpstream } from '../../src/protocol/answer.ts';
import type { RpcError } from '../../src/protocol/errors.ts';

const scan = { strict: true, depthMax: 64 };
const limits: PageLimits = { pagesMax: 5, itemsMax: 10, scan };

/** Answers each page by its cursor; `''` is the first where no cursor was sent. */
async function fetched(pages: Readonly<Record<string, string>>, over: Partial<PageLimits> = {}) {
  const asked: unknown[] = [];
  const list = await fetchList(
    'tools',
    (params) => {
      asked.push(params);
      const key = 'cursor' in params ? `>${params['cursor']}` : 'first';
      const message = scanUpstream(Buffer.from(`{"id":1,"result":${pages[key]}}`), scan);
      if (message.kind !== 'result') throw new Error(`no such page: ${key}`);
      return Promise.resolve(message);
    },
    { ...limits, ...over },
  );
  return { ...list, items: list.items.map(String), asked };
}

const failure = (pages: Readonly<Record<string, string>>): Promise<RpcError> =>
  fetched(pages).then(
    () => expect.fail('it was fetched'),
    (error: RpcError) => error,
  );

describe('a list', () => {
  test('of one page is its items as they were written', async () => {
    const { items, cut, asked } = await fetched({ first: '{"x":1,"tools":[ {"n":1.0} , {"n":"\\u00e9"}]}' });
    expect(items).toEqual(['{"n":1.0}', '{"n":"\\u00e9"}']);
    expect([cut, asked]).toEqual([undefined, [{}]]);
  });

  test('of several pages is all of them, in their order', async () => {
    const { items, asked } = await fetched({
      first: '{"tools":[1],"nextCursor":"b"}',
      '>b': '{"tools":[],"nextCursor":"c"}',
      '>c': '{"tools":[2,3]}',
    });
    expect(items).toEqual(['1', '2', '3']);
    expect(asked).toEqual([{}, { cursor: 'b' }, { cursor: 'c' }]);
  });

  test('has a next page where the cursor is empty', async () => {
    const { items, asked } = await fetched({ first: '{"tools":[1],"nextCursor":""}', '>': '{"tools":[2]}' });
    expect([items, asked]).toEqual([
      ['1', '2'],
      [{}, { cursor: '' }],
    ]);
  });

  test.each(['null', 'false', '7'])('ends where the cursor is %s', async (cursor) => {
    expect((await fetched({ first: `{"tools":[1],"nextCursor":${cursor}}` })).items).toEqual(['1']);
  });

  test('whose cursor comes again is an error, be it at once or later', async () => {
    const again = { first: '{"tools":[1],"nextCursor":"a"}', '>a': '{"tools":[2],"nextCursor":"a"}' };
    expect(await failure(again)).toMatchObject({
      code: 5020,
      message: expect.stringContaining('tools/list'),
    });
    const circle = {
      first: '{"tools":[1],"nextCursor":"a"}',
      '>a': '{"tools":[2],"nextCursor":"b"}',
      '>b': '{"tools":[3],"nextCursor":"a"}',
    };
    expect((await failure(circle)).message).toContain('same cursor twice');
  });

  test('with more pages than are followed is cut, and says so', async () => {
    const pages: Record<string, string> = { first: '{"tools":[0],"nextCursor":"1"}' };
    for (let i = 1; i < 10; i++) pages[`>${i}`] = `{"tools":[${i}],"nextCursor":"${i + 1}"}`;
    const { items, cut, asked } = await fetched(pages);
    expect(items).toEqual(['0', '1', '2', '3', '4']);
    expect(asked).toHaveLength(5);
    expect(cut).toContain('limits.pages');
  });

  test('with exactly as many pages as are followed is whole', async () => {
    const pages: Record<string, string> = { first: '{"tools":[0],"nextCursor":"1"}' };
    for (let i = 1; i < 5; i++) pages[`>${i}`] = `{"tools":[${i}]${i < 4 ? `,"nextCursor":"${i + 1}"` : ''}}`;
    expect(await fetched(pages)).toMatchObject({ cut: undefined, items: ['0', '1', '2', '3', '4'] });
  });

  test('with more items than are kept is cut, and says so', async () => {
    const { items, cut } = await fetched({ first: `{"tools":[${[...Array(11).keys()]}],"nextCursor":"a"}` });
    expect(items).toHaveLength(10);
    expect(cut).toContain('limits.listItems');
    expect((await fetched({ first: `{"tools":[${[...Array(10).keys()]}]}` })).cut).toBeUndefined();
  });

  test.each(['{}', '{"tools":{}}', '{"tools":null}', '{"prompts":[]}'])(
    'is none in the answer %s',
    async (page) => {
      expect(await failure({ first: page })).toMatchObject({ code: 5020 });
    },
  );
});

describe('the hints of a list', () => {
  const hints = async (...pages: readonly string[]) => {
    const all: Record<string, string> = {};
    pages.forEach((page, i) => {
      const next = i + 1 < pages.length ? `"nextCursor":"${i + 1}",` : '';
      all[i === 0 ? 'first' : `>${i}`] = `{${next}${page}"tools":[]}`;
    });
    const { ttlMs, scope } = await fetched(all);
    return [ttlMs, scope];
  };

  test.each([
    [['"ttlMs":5,"cacheScope":"public",'], [5, 'public']],
    [['"ttlMs":5.9,"cacheScope":"private",'], [5, 'private']],
    [['"ttlMs":-1,'], [0, undefined]],
    [['"ttlMs":"5","cacheScope":"shared",'], [undefined, undefined]],
    [[''], [undefined, undefined]],
    [
      ['"ttlMs":5,"cacheScope":"public",', '"ttlMs":3,"cacheScope":"public",'],
      [3, 'public'],
    ],
    [
      ['"ttlMs":5,"cacheScope":"private",', '"ttlMs":9,"cacheScope":"public",'],
      [5, 'private'],
    ],
    [
      ['"ttlMs":5,"cacheScope":"public",', '"ttlMs":9,"cacheScope":"private",'],
      [5, 'private'],
    ],
    // What a page does not say is the least that it could have said.
    [
      ['"ttlMs":5,"cacheScope":"public",', ''],
      [undefined, undefined],
    ],
    [
      ['', '"ttlMs":5,"cacheScope":"public",'],
      [undefined, undefined],
    ],
    [
      ['', '"ttlMs":5,"cacheScope":"private",'],
      [undefined, 'private'],
    ],
  ])('are the least of all pages: %j', async (pages, expected) => {
    expect(await hints(...pages)).toEqual(expected);
  });
});
