import { describe, expect, test } from 'vitest';
import { templateTest } from '../../src/catalog/uri-template.ts';

const fits = (template: string, uri: string): boolean | undefined => templateTest(template)?.(uri);

describe('a URI fits a template', () => {
  test.each([
    ['raw://a/item/{id}', 'raw://a/item/5'],
    ['raw://a/item/{id}', 'raw://a/item/'],
    ['raw://a/{kind}/{id}', 'raw://a/item/5'],
    ['raw://a/{kind}/{id}/end', 'raw://a/item/5/end'],
    ['file:///{+path}', 'file:///a/b/c.txt'],
    ['file://{/path*}', 'file:///a/b/c'],
    ['raw://a{?q,r}', 'raw://a?q=1&r=2'],
    ['raw://a{?q}', 'raw://a'],
    ['raw://a{#section}', 'raw://a#b'],
    ['raw://a/{x}{?q}', 'raw://a/1?q=2'],
    ['raw://a/fixed', 'raw://a/fixed'],
    ['raw://a/{a}-{b}', 'raw://a/1-2'],
  ])('%s: %s', (template, uri) => {
    expect(fits(template, uri)).toBe(true);
  });
});

describe('a URI does not fit a template', () => {
  test.each([
    ['raw://a/item/{id}', 'raw://b/item/5'],
    ['raw://a/item/{id}', 'raw://a/item/5/6'],
    ['raw://a/item/{id}', 'raw://a/item/5?q'],
    ['raw://a/item/{id}', 'raw://a/item/5#x'],
    ['raw://a/item/{id}', 'raw://a/item'],
    ['raw://a/{id}/end', 'raw://a/5'],
    ['raw://a/{id}/end', 'raw://a/end'],
    ['raw://a/fixed', 'raw://a/fixed/'],
    ['raw://a/{a}-{b}', 'raw://a/12'],
    ['raw://a/{x}a{y}a', 'raw://a/a'],
  ])('%s: %s', (template, uri) => {
    expect(fits(template, uri)).toBe(false);
  });

  test('that is longer than any URI is looked at for', () => {
    expect(fits('raw://a/{+x}', `raw://a/${'x'.repeat(10_000)}`)).toBe(false);
  });
});

test('a template that begins with an expression owns nothing, since all would fit', () => {
  expect(templateTest('{+url}')).toBeUndefined();
  expect(templateTest('{scheme}://a')).toBeUndefined();
});

test('is told in linear time, whatever the template', () => {
  const test = templateTest(`raw://${'{a}x'.repeat(200)}`);
  const startMs = performance.now();
  expect(test?.(`raw://${'x'.repeat(8_000)}y`)).toBe(false);
  expect(performance.now() - startMs).toBeLessThan(2_000);
});
