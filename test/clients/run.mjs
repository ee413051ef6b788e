#!/usr/bin/env node
/**
 * Real clients through the built gateway to real servers.
 *
 *   npm run clients -- [--only NAME] [--json]
 *
 * Installs those that are no dependency into `.cache/clients`, in pinned versions, starts server-everything on stdio and
 * over HTTP and server-memory behind `mcpyard serve`, and puts each client through checks.mjs. Exits with 1 where one fails.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { checks } from './checks.mjs';
import { startGateway } from './gateway.mjs';
import { install } from './install.mjs';
import { libraries } from './libraries.mjs';
import { programs } from './programs.mjs';

const { values } = parseArgs({
  options: { only: { type: 'string' }, json: { type: 'boolean', default: false } },
});
const folder = fileURLToPath(new URL('../../.cache/clients', import.meta.url));
const checkMs = 60_000;

function within(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${checkMs / 1000} s`)), checkMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const sentence = (error) =>
  (error instanceof Error ? error.message : String(error)).split('\n')[0].slice(0, 300);

/** What came of each check of one client. */
async function checked(open, context) {
  const outcomes = {};
  let client;
  try {
    client = await within(Promise.resolve(open(context)));
  } catch (error) {
    return { connect: `FAILED: ${sentence(error)}` };
  }
  for (const [name, check] of Object.entries(checks)) {
    try {
      outcomes[name] = (await within(check(client))) ?? 'ok';
    } catch (error) {
      outcomes[name] = `FAILED: ${sentence(error)}`;
    }
  }
  await client.close();
  return outcomes;
}

const isFailed = (outcome) => outcome.startsWith('FAILED');

function tell(name, outcomes) {
  const all = Object.entries(outcomes);
  const failed = all.filter(([, outcome]) => isFailed(outcome));
  const skipped = all.filter(([, outcome]) => outcome === '-').map(([check]) => check);
  const passed = all.length - failed.length - skipped.length;
  const lacking = new Set(skipped.map((check) => check.replace(/ \(.*/, '')));
  const without = lacking.size === 0 ? '' : `  (has no ${[...lacking].join(', ')})`;
  console.log(`${name.padEnd(22)} ${passed} of ${all.length - skipped.length}${without}`);
  for (const [check, outcome] of failed) console.log(`  ${check}: ${outcome}`);
}

const versions = install(folder);
const gateway = await startGateway();
const results = {};
try {
  const clients = Object.entries({ ...libraries, ...programs }).filter(
    ([name]) => values.only === undefined || name.startsWith(values.only),
  );
  for (const [at, [name, open]] of clients.entries()) {
    const home = join(gateway.folder, `home-${at}`);
    mkdirSync(home);
    results[name] = await checked(open, { url: gateway.url, folder, home });
    if (!values.json) tell(name, results[name]);
  }
} finally {
  await gateway.stop();
}
if (values.json) console.log(JSON.stringify({ versions, results }, null, 2));
const outcomes = Object.values(results).flatMap((result) => Object.values(result));
if (outcomes.length === 0 || outcomes.some(isFailed)) process.exitCode = 1;
