import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { renderConfigurationDocs } from '../../src/config/docs.ts';
import { configJsonSchema, type JsonSchema } from '../../src/config/json-schema.ts';

const rows = renderConfigurationDocs()
  .split(/^## /m)
  .flatMap((section) => {
    const [title = '', ...lines] = section.split('\n');
    const path = title.startsWith('`') ? `${title.replaceAll('`', '')}.` : '';
    return lines.flatMap((line) => {
      const [, key, type, fallback, about] =
        /^\| `(\w+)` +\| (.*?) +\| (.*?) *\| (.*?) *\|$/.exec(line) ?? [];
      return key === undefined ? [] : [{ key: path + key, type, fallback, about: about ?? '' }];
    });
  });

test('docs/configuration.md is what the schema says', () => {
  const committed = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
  expect(committed, 'docs/configuration.md is out of date: run `npm run docs`').toBe(
    renderConfigurationDocs(),
  );
});

test('every key has one sentence about it, and a type', () => {
  for (const { key, type, about } of rows) {
    expect(about, key).toMatch(/^\S.{10,}\.$/);
    expect(type, key).toMatch(/^\S/);
  }
});

describe('every key of the design is documented with its default', () => {
  const everything: readonly (readonly [string, string])[] = [
    ['listen', '`127.0.0.1:8808`'],
    ['admin', '`127.0.0.1:9808`'],
    ['hosts', '`localhost`, `127.0.0.1`, `[::1]`'],
    ['origins', '`[]`'],
    ['publicUrl', 'none'],
    ['trustedProxies', '`[]`'],
    ['keys', '`{}`'],
    ['auth', '`keys` where there are any, else `none`, which has to be written to listen beyond loopback'],
    ['tls.cert', ''],
    ['tls.key', ''],
    ['metrics.token', 'none is asked for'],
    ['stateDir', '`$STATE_DIRECTORY`, else mcpyard in the XDG state folder'],
    ['secret', 'made once and kept in `stateDir`'],
    ['legacySse', '`false`'],
    ['workers', '`1`'],
    ['drainTimeout', '25s on SIGTERM, 2s on SIGINT'],
    ['names.separator', '`__`'],
    ['names.max', '`50`'],
    ['lists.deadline', '`5s`'],
    ['lists.pageSize', '`1000`'],
    ['cache.defaultTtl', '`60s`'],
    ['cache.max', '`64MiB`'],
    ['probe.interval', '`30s`'],
    ['probe.timeout', '`10s`'],
    ['limits.body', '`8MiB`'],
    ['limits.bodies', '`256MiB`'],
    ['limits.holdBytes', '`256KiB`'],
    ['limits.result', '`64MiB`'],
    ['limits.callsInFlight', '`10000`'],
    ['limits.instances', '`50`'],
    ['limits.listenStreams', '`20000`'],
    ['limits.pages', '`100`'],
    ['limits.listItems', '`10000`'],
    ['limits.nesting', '`128`'],
    ['limits.sseBuffer', '`4MiB`'],
    ['log.level', '`info`'],
    ['log.calls', '`errors`'],
    ['servers.<name>.command', ''],
    ['servers.<name>.args', ''],
    ['servers.<name>.env', '`{}`'],
    ['servers.<name>.cwd', 'the folder of the config file'],
    ['servers.<name>.url', ''],
    ['servers.<name>.headers', '`{}`'],
    ['servers.<name>.transport', '`auto`'],
    ['servers.<name>.enabled', '`true`'],
    ['servers.<name>.prefix', "the server's name"],
    ['servers.<name>.isolation', '`shared`'],
    ['servers.<name>.roots', '`[]`'],
    ['servers.<name>.startTimeout', '`30s`'],
    ['servers.<name>.timeout', '`5m`'],
    ['servers.<name>.maxTimeout', '`1h`'],
    ['servers.<name>.idleTimeout', 'off, 10m with isolation: caller'],
    ['servers.<name>.retry', '`off`'],
    ['servers.<name>.restart.initial', '`250ms`'],
    ['servers.<name>.restart.max', '`60s`'],
    ['servers.<name>.restart.stable', '`10s`'],
    ['servers.<name>.concurrency.max', '`1000`'],
    ['servers.<name>.concurrency.queue', '`1000`'],
    ['servers.<name>.concurrency.queueTimeout', '`30s`'],
    ['servers.<name>.breaker.failures', '`10`'],
    ['servers.<name>.breaker.cooldown', '`1s`'],
    ['servers.<name>.breaker.maxCooldown', '`30s`'],
    ['servers.<name>.passthrough', '`[]`'],
    ['servers.<name>.passthroughHeaders', '`false`'],
    ['servers.<name>.tools.allow', 'all'],
    ['servers.<name>.tools.deny', '`[]`'],
    ['servers.<name>.tools.rename', '`{}`'],
  ];

  test.each(everything)('%s: %s', (key, fallback) => {
    expect(rows.find((row) => row.key === key)?.fallback).toBe(fallback);
  });

  test('and there is no other key', () => {
    expect(rows.map(({ key }) => key).toSorted()).toEqual(everything.map(([key]) => key).toSorted());
  });
});

describe('the JSON Schema', () => {
  const schema = configJsonSchema() as JsonSchema;

  test('is strict, and describes every key of the documentation', () => {
    const keys = (at: JsonSchema, path: string): readonly string[] =>
      Object.entries(at.properties ?? {}).flatMap(([key, field]) => {
        const open = field.additionalProperties;
        if (typeof open === 'object' && open.properties !== undefined)
          return keys(open, `${path}${key}.<name>.`);
        return field.properties === undefined ? [path + key] : keys(field, `${path}${key}.`);
      });
    expect(keys(schema, '').toSorted()).toEqual(rows.map(({ key }) => key).toSorted());
    expect(schema.additionalProperties).toBe(false);
    expect(schema.properties?.['limits']?.additionalProperties).toBe(false);
  });

  test('accepts a reference wherever a value has a certain form', () => {
    const deadline = schema.properties?.['lists']?.properties?.['deadline']?.pattern;
    expect(`\${D:-5s}`).toMatch(new RegExp(deadline ?? '^$'));
    expect('5s').toMatch(new RegExp(deadline ?? '^$'));
    expect('soon').not.toMatch(new RegExp(deadline ?? '.'));
    const [choice, reference] = schema.properties?.['log']?.properties?.['level']?.anyOf ?? [];
    expect(choice?.enum).toContain('info');
    expect(`\${LEVEL}`).toMatch(new RegExp(reference?.pattern ?? '^$'));
  });

  test('can be written as JSON', () => {
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
  });
});
