/** What was measured, and on what. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import path from 'node:path';
import { root } from './cache.mjs';
import { nginxVersion } from './nginx.mjs';

const gibibyte = 1024 ** 3;

function commit() {
  const { status, stdout } = spawnSync('git', ['-C', root, 'describe', '--always', '--dirty'], {
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim() : 'unknown';
}

/** The versions by name. */
export function versionsOf() {
  const [cpu] = cpus();
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  return {
    mcpyard: `${version} (${commit()})`,
    node: process.version,
    nginx: nginxVersion() ?? 'missing',
    system: `${type()} ${release()}`,
    processor: `${cpus().length} cores, ${cpu?.model.trim() ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / gibibyte)} GiB`,
  };
}
