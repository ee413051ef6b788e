/** The official conformance suite: installed from npm, into $CONFORMANCE_HOME or ~/.cache/mcpyard-conformance, and run. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const suiteVersion = '0.2.0-alpha.12';

/** The command that starts the suite, which needs a newer Node.js than the project; both are installed first where they are not there yet. */
export function installSuite() {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const home = process.env['CONFORMANCE_HOME'] ?? join(cache, 'mcpyard-conformance');
  const modules = join(home, 'node_modules');
  const suite = join(modules, '@modelcontextprotocol', 'conformance');
  const node = join(modules, '.bin', 'node');
  const manifest = join(suite, 'package.json');
  const isThere =
    existsSync(node) &&
    existsSync(manifest) &&
    JSON.parse(readFileSync(manifest, 'utf8')).version === suiteVersion;
  if (!isThere) {
    mkdirSync(home, { recursive: true });
    if (!existsSync(join(home, 'package.json')))
      writeFileSync(join(home, 'package.json'), '{"private":true}\n');
    const packages = ['node@24', `@modelcontextprotocol/conformance@${suiteVersion}`];
    console.error(`installing ${packages.join(' and ')} in ${home}`);
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--save-exact', ...packages], {
      cwd: home,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  }
  return [node, join(suite, 'dist', 'index.js')];
}

/** Stands for a revision where the scenarios of the tasks extension are meant, which are of none. */
export const tasksSpec = 'tasks';

/** The names of the scenarios that apply to the revision, or to the tasks extension, in the suite's order. */
export function scenariosOf([node, suite], spec) {
  const list = execFileSync(node, [suite, 'list', '--server'], { encoding: 'utf8' });
  const applies = (name, versions) =>
    spec === tasksSpec
      ? versions === 'extension' && name.startsWith('tasks-')
      : versions.split(',').includes(spec);
  return [...list.matchAll(/^ {2}- (\S+) \[(.+)\]$/gm)]
    .filter(([, name, versions]) => applies(name, versions))
    .map(([, name]) => name);
}

/** Runs one scenario and returns its checks, or undefined where it left none; what it leaves is in `folder`. */
export async function runScenario([node, suite], { url, spec, folder }, name) {
  const output = join(folder, `${spec}-${name}`);
  mkdirSync(output);
  const log = openSync(join(folder, 'suite.log'), 'a');
  const revision = spec === tasksSpec ? [] : ['--spec-version', spec];
  const args = ['server', '--url', url, '--scenario', name, ...revision, '-o', output];
  await once(spawn(node, [suite, ...args], { stdio: ['ignore', log, log] }), 'exit');
  const file = readdirSync(output, { recursive: true }).find((path) => path.endsWith('checks.json'));
  return file === undefined ? undefined : JSON.parse(readFileSync(join(output, file), 'utf8'));
}
