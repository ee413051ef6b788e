/** The clients that are no dependency of this project: put into a folder of their own, in the versions that are written here. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const versions = {
  '@ai-sdk/mcp': '2.0.99',
  '@apify/mcpc': '0.2.6',
  '@modelcontextprotocol/inspector': '2.12.0',
  'mcp-remote': '0.15.1',
};

function installedVersion(folder, name) {
  try {
    return JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')).version;
  } catch {
    return undefined;
  }
}

/** Installs what is not there yet; returns the versions by name. */
export function install(folder) {
  const missing = Object.entries(versions).filter(
    ([name, version]) => installedVersion(folder, name) !== version,
  );
  if (missing.length === 0) return versions;
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, dependencies: versions }, null, 2),
  );
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--no-package-lock'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return versions;
}
