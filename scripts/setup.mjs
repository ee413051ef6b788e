// Before start and test: installs what the lock says and builds what the source says, only where either is newer.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const at = (...parts) => path.join(root, ...parts);
const changed = (file) => (existsSync(file) ? statSync(file).mtimeMs : 0);

function newest(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true }).reduce(
    (last, entry) =>
      entry.isFile() ? Math.max(last, changed(path.join(entry.parentPath ?? entry.path, entry.name))) : last,
    0,
  );
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], shell: false });
  if (error) console.error(`${command}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`mcpyard needs Node.js 20.19 or later; this is ${process.versions.node}`);
  process.exit(1);
}

mkdirSync(at('.cache'), { recursive: true });

// npm writes this last, whoever runs it, so an installation that broke off leaves none; without the compiler, dev packages were left out.
const installed = at('node_modules', '.package-lock.json');
const compiler = at('node_modules', 'typescript', 'bin', 'tsc');
if (changed(installed) < changed(at('package-lock.json')) || !existsSync(compiler)) {
  console.error('Installing packages (npm ci) …');
  run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']);
}

const built = at('dist', '.built');
const sources = Math.max(
  newest(at('src')),
  changed(at('tsconfig.json')),
  changed(at('tsconfig.build.json')),
  changed(installed),
);
if (changed(built) < sources) {
  console.error('Building …');
  run(process.execPath, [compiler, '-p', at('tsconfig.build.json')]);
  writeFileSync(built, '');
}
