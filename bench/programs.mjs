/** The mock and the load: in C where there is a compiler, else in Node.js, with the same arguments and output. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheFolder } from './cache.mjs';

const sources = fileURLToPath(new URL('./native/', import.meta.url));
const at = (file) => fileURLToPath(new URL(file, import.meta.url));

function compile(name, digest) {
  const program = path.join(cacheFolder('native'), `${name}-${digest}`);
  if (existsSync(program)) return program;
  const made = `${program}.${process.pid}`;
  const source = path.join(sources, `${name}.c`);
  const { status, error } = spawnSync('cc', ['-O2', '-std=gnu11', '-o', made, source], {
    stdio: ['ignore', 2, 2],
  });
  if (error?.code === 'ENOENT') return undefined;
  if (status !== 0) throw new Error(`cc could not compile ${source}`);
  renameSync(made, program);
  return program;
}

/** The argv of both, and what they are made of; `{ native: false }` never compiles. */
export function findPrograms({ native = true } = {}) {
  const hash = createHash('sha256');
  for (const file of readdirSync(sources).sort()) hash.update(readFileSync(path.join(sources, file)));
  const digest = hash.digest('hex').slice(0, 12);
  const [mock, load] = native ? ['mock', 'load'].map((name) => compile(name, digest)) : [];
  if (mock !== undefined && load !== undefined) return { kind: 'C', mock: [mock], load: [load] };
  return {
    kind: 'Node.js',
    mock: [process.execPath, at('./mock.mjs')],
    load: [process.execPath, at('./load.mjs')],
  };
}
