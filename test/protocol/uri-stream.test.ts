import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UriStream } from '../../src/protocol/uri-stream.ts';

const rewrite = (uri: string): string => (uri.startsWith('x:') ? uri.replace('x:', 'x:up+') : uri);
const passed = (text: string, sizes: readonly number[] = []): string => {
  const stream = new UriStream(rewrite);
  let rest = Buffer.from(text);
  const out: Buffer[] = [];
  for (const size of sizes) {
    out.push(...stream.push(rest.subarray(0, size)));
    rest = rest.subarray(size);
  }
  out.push(...stream.push(rest));
  return Buffer.concat(out).toString();
};

const named = [
  '{"result":{"content":[{"type":"resource_link","uri":"x:1","n":1.0}, {"uri" : "x:2"}]}}',
  '{"result":{"content":[{"resource":{"text":"\\"uri\\":\\"x:3\\"","uri":"x:4"},"type":"resource"}]}}',
  '{"result":{"contents":[{"uri":"x:5","blob":"eDo1"}]},"id":1}',
  '{"result":{"messages":[{"role":"user","content":{"resource":{"uri":"x:6"}}},{"content":[{"uri":"x:7"}]}]}}',
  '{"result":{"_meta":{"ui":{"resourceUri":"x:8"},"ui/resourceUri":"x:9"}}}',
  '{"result":{"taskId":"x:t","result":{"content":[{"uri":"x:10"}]}}}',
  '{"error":{"code":-32602,"data":{"uri":"x:12"}}}',
  '{"result":{"c\\u006fntent":[{"uri":"x\\u003a11"}]}}',
];
const others = [
  '{"result":{"structuredContent":{"content":[{"uri":"x:1"}],"uri":"x:2"},"uri":"x:3","content":"x:4"}}',
  '{"content":[{"uri":"x:5"}],"result":{"content":[{"text":"x:6","annotations":{"uri":"x:7"}}]}}',
  '{"result":{"content":[{"uri":["x:8"]},{"uri":{"uri":"x:9"}},{"uri":7},["x:10",{"uri":"x:11"}]]}}',
  '{"error":{"uri":"x:12"}}',
  '{"result":{"content":[{"uri":"y:13"}]}}',
  'no JSON at all }]}"{"',
  '',
];

describe('URIs of resources', () => {
  test.each(named)('are rewritten in %s', (text) => {
    const expected = text
      .replaceAll(/"uri"( ?: ?)"x:/g, '"uri"$1"x:up+')
      .replaceAll(/esourceUri":"x:/g, 'esourceUri":"x:up+');
    expect(passed(text)).toBe(
      expected.replace('x\\u003a11', 'x:up+11').replace('\\"uri\\":\\"x:up+3', '\\"uri\\":\\"x:3'),
    );
    expect(passed(text)).not.toBe(text);
  });

  test('are found under a key of which every letter is an escape', () => {
    const key = [...'ui/resourceUri']
      .map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('');
    expect(passed(`{"result":{"_meta":{"${key}":"x:1"}}}`)).toBe(`{"result":{"_meta":{"${key}":"x:up+1"}}}`);
  });

  test.each(others)('are looked for nowhere else: %s', (text) => {
    expect(passed(text)).toBe(text);
  });

  test('are the same however the bytes are cut', () => {
    fc.assert(
      fc.property(fc.constantFrom(...named, ...others), fc.array(fc.nat(9)), (text, sizes) => {
        expect(passed(text, sizes)).toBe(passed(text));
      }),
    );
  });

  test('are found in the notice of a task that is over', () => {
    const text = '{"params":{"taskId":"t","result":{"content":[{"uri":"x:1"}]},"uri":"x:2"}}';
    const pieces = new UriStream(rewrite, 'taskNotice').push(Buffer.from(text));
    expect(Buffer.concat(pieces).toString()).toBe(text.replace('x:1', 'x:up+1'));
  });

  test('that are too long to be any pass as they are', () => {
    const text = `{"result":{"content":[{"uri":"x:${'a'.repeat(70_000)}"},{"uri":"x:1"}]}}`;
    for (const sizes of [[], [40_000, 20_000, 20_000]])
      expect(passed(text, sizes)).toBe(text.replace('"x:1"', '"x:up+1"'));
  });
});
