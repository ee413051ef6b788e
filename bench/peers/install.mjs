/** The peers from npm, pinned, in a folder of their own. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { cacheFolder } from '../cache.mjs';

const pins = {
  'mcp-proxy': '6.7.19',
  supergateway: '4.0.0',
  '@civic/passthrough-mcp-server': '0.12.1',
  'mcp-hub': '4.2.1',
};

const manifestOf = (folder, name) => path.join(folder, 'node_modules', name, 'package.json');
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const isThere =
  (folder) =>
  ([name, version]) =>
    existsSync(manifestOf(folder, name)) && read(manifestOf(folder, name)).version === version;

/** Installs what is missing; resolves names to the files that their `bin` names. No script of a package is run. */
export function installPeers() {
  const folder = cacheFolder('peers');
  const wanted = Object.entries(pins);
  if (!wanted.every(isThere(folder))) {
    writeFileSync(path.join(folder, 'package.json'), '{"private":true}');
    const packages = wanted.map(([name, version]) => `${name}@${version}`);
    const flags = ['--no-audit', '--no-fund', '--loglevel=error', '--ignore-scripts', '--save-exact'];
    const { status } = spawnSync('npm', ['install', ...flags, ...packages], {
      cwd: folder,
      stdio: ['ignore', 2, 2],
    });
    if (status !== 0) throw new Error('npm could not install the peers');
  }
  return Object.fromEntries(
    wanted.map(([name]) => {
      const { bin } = read(manifestOf(folder, name));
      return [name, path.join(folder, 'node_modules', name, Object.values(bin)[0])];
    }),
  );
}
