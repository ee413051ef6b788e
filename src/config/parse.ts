/** From the text of a config file to a Config, or to an error that lists everything that is wrong with it. */
import path from 'node:path';
import { buildConfig, type Material } from './build.ts';
import { type Complaint, complaintsOf } from './complaints.ts';
import type { Config, DisabledServer } from './config.ts';
import { type ConfigDocument, readDocument } from './document.ts';
import { complaintsAboutDoors } from './doors.ts';
import { configErrorOf } from './errors.ts';
import { type FilledTree, type FillProblem, fillTree, type Sources, serverOf } from './fill.ts';
import { plainSchema } from './json-schema.ts';
import { complaintsAboutServer } from './rules.ts';
import { configSchema } from './schema.ts';
import { isAtOrBelow, isTree, pathText, type Tree } from './tree.ts';

export interface ParseOptions extends Sources {
  /** The absolute path of the file; relative paths in it start at its folder. */
  readonly file: string;
  /** How messages name the file; its own name without one. */
  readonly label?: string;
}

const serversIn = (tree: unknown): Tree => (isTree(tree) && isTree(tree['servers']) ? tree['servers'] : {});

/** A section whose keys are all commented out is an empty one. */
function withoutEmptySections(tree: unknown): unknown {
  if (!isTree(tree)) return tree;
  const isEmptySection = (key: string, value: unknown) =>
    value === null && plainSchema().properties?.[key]?.type === 'object';
  return Object.fromEntries(Object.entries(tree).filter(([key, value]) => !isEmptySection(key, value)));
}

/** Reads each file once, so that all that is said about a config is about the same contents. */
function readOnce(read: (name: string) => string): (name: string) => string {
  const contents = new Map<string, string>();
  return (name) => {
    const text = contents.get(name) ?? read(name);
    contents.set(name, text);
    return text;
  };
}

/** Complaints about a value that is only wrong because nothing was filled in. */
const isFromProblem = (complaint: Complaint, problem: FillProblem): boolean =>
  complaint.at === 'value' &&
  (isAtOrBelow(complaint.path, problem.path) ||
    (complaint.path.length > 2 && isAtOrBelow(problem.path, complaint.path)));

function complaintsAbout(
  raw: unknown,
  { value, problems }: FilledTree,
  sources: Sources,
): readonly Complaint[] {
  const result = configSchema.safeParse(value);
  const fromSchema = result.success ? [] : complaintsOf(result.error, value);
  const fromRules = Object.entries(serversIn(raw)).flatMap(([name, server]) => {
    const filled = serversIn(value)[name];
    return isTree(server) && isTree(filled)
      ? complaintsAboutServer({ name, raw: server, filled }, sources)
      : [];
  });
  const elsewhere = problems.filter((problem) => serverOf(problem.path) === undefined);
  return [
    ...[...fromSchema, ...fromRules, ...complaintsAboutDoors(value)].filter(
      (complaint) => !problems.some((problem) => isFromProblem(complaint, problem)),
    ),
    ...elsewhere.map(({ path: at, message }): Complaint => ({ path: at, at: 'value', message })),
  ];
}

function disabledServers(
  filled: FilledTree,
  document: ConfigDocument,
  label: string,
): readonly DisabledServer[] {
  const servers = serversIn(filled.value);
  return document.keysAt(['servers']).flatMap((name): readonly DisabledServer[] => {
    const server = servers[name];
    const problems = filled.problems.filter((problem) => serverOf(problem.path) === name);
    if (isTree(server) && server['enabled'] === false)
      return [{ name, kind: 'off', reason: 'it is switched off in the config (`enabled: false`)' }];
    if (problems.length === 0) return [];
    const reasons = problems.map(({ path: at, message }) => {
      const { line, column } = document.locate(at, 'value');
      return `${message} (${label}:${line}:${column} ${pathText(at)})`;
    });
    return [{ name, kind: 'unfilled', reason: reasons.join('; ') }];
  });
}

/** The tree without the servers that lack a value: what is left of them has nothing to be checked against. */
function withoutUnfilled(tree: unknown, problems: readonly FillProblem[]): unknown {
  if (!isTree(tree) || !isTree(tree['servers'])) return tree;
  const unfilled = new Set(problems.map((problem) => serverOf(problem.path)));
  const servers = Object.entries(tree['servers']).filter(([name]) => !unfilled.has(name));
  return { ...tree, servers: Object.fromEntries(servers) };
}

/** Reads a config. Throws a ConfigError with every mistake in it; looks at nothing but its arguments. */
export function parseConfig(text: string, options: ParseOptions): Config {
  const { file, label = path.basename(file), env, readSecretFile } = options;
  const directory = path.dirname(file);
  const sources: Sources = {
    env,
    readSecretFile: readOnce((name) => readSecretFile(path.resolve(directory, name))),
  };

  const document = readDocument(text);
  if (document.value === undefined) throw configErrorOf(label, document.issues);
  const raw = withoutEmptySections(document.value);
  const filled = fillTree(raw, sources);
  const complaints = complaintsAbout(raw, filled, sources).map(({ path: at, at: what, message }) => ({
    ...document.locate(at, what),
    path: pathText(at),
    message,
  }));
  const issues = [...document.issues, ...complaints];
  if (issues.length > 0) throw configErrorOf(label, issues);

  const material: Material = {
    file,
    written: serversIn(raw),
    order: document.keysAt(['servers']),
    filled: filled.value,
    fromSources: filled.fromSources,
    disabled: disabledServers(filled, document, label),
    sources,
  };
  return buildConfig(configSchema.parse(withoutUnfilled(filled.value, filled.problems)), material);
}
