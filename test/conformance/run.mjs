#!/usr/bin/env node
/**
 * Runs the official conformance suite's server scenarios against the gateway, which serves one fixture upstream.
 *
 *   node test/conformance/run.mjs [--all]
 *   node test/conformance/run.mjs [--upstream modern] [--spec 2026-07-28] [--only a,b] [--at-least N] [--stdio | --direct | --url URL]
 *
 *   --all        both fixtures at every revision, with a table; exit code 1 where less passes than has to. So without any option
 *   --upstream   the fixture: `modern`, `legacy` or `tasks`
 *   --spec       the revision, or `tasks` for the scenarios of the tasks extension
 *   --stdio      has the gateway run the fixture as a child instead of reaching it over HTTP
 *   --direct     asks the fixture itself, without the gateway: what the fixture can't do, the gateway can't lose
 *   --url URL    asks a server that is running already, which has to be on localhost
 *   --at-least   how many scenarios have to pass for exit code 0; all of them without it
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runMatrix } from './matrix.mjs';
import { fixtures, Servers } from './servers.mjs';
import { installSuite, scenariosOf } from './suite.mjs';
import { judge, print } from './verdicts.mjs';

const { values: options } = parseArgs({
  options: {
    all: { type: 'boolean', default: process.argv.length === 2 },
    upstream: { type: 'string', default: 'modern' },
    url: { type: 'string' },
    spec: { type: 'string', default: '2026-07-28' },
    only: { type: 'string' },
    direct: { type: 'boolean', default: false },
    stdio: { type: 'boolean', default: false },
    'at-least': { type: 'string' },
  },
});

/** Resolves with whether enough scenarios of one revision passed. */
async function runOne(suite, folder) {
  const { upstream, spec, only, direct, stdio } = options;
  if (!Object.hasOwn(fixtures, upstream)) throw new Error(`--upstream is one of ${Object.keys(fixtures)}`);
  const servers = new Servers(folder);
  try {
    const start = () => (direct ? servers.startUpstream(upstream) : servers.startGateway(upstream, stdio));
    const url = options.url ?? (await start());
    console.error(`asking ${url} at ${spec}`);
    const wanted = only?.split(',');
    const names = scenariosOf(suite, spec).filter((name) => wanted?.includes(name) ?? true);
    const failed = await judge(suite, { url, spec, folder }, names, print);
    const passed = names.length - failed.length;
    console.log(`${passed} passed, ${failed.length} failed`);
    return names.length > 0 && passed >= Number(options['at-least'] ?? names.length);
  } finally {
    await servers.stop();
  }
}

const suite = installSuite();
const folder = mkdtempSync(join(tmpdir(), 'conformance-'));
console.error(`logs and results in ${folder}`);
process.exitCode = (await (options.all ? runMatrix : runOne)(suite, folder)) ? 0 : 1;
