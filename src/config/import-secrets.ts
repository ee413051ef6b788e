/** Where a server's settings hold a secret as it is, rather than a reference to one. */
import { variableName } from './import-references.ts';
import { secretsOf } from './secrets.ts';
import { isTree, type Tree } from './tree.ts';

/** A place with a secret, and a variable that could hold it. */
interface PlainSecret {
  readonly place: string;
  readonly variable: string;
}

const isReference = (text: string): boolean => /(?<!\$)\$\{/.test(text);

/** Beginnings of the tokens of well-known services, and credentials in a URL. */
const token =
  /^(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[a-z]-|sbp_|ntn_|AKIA|eyJ)[\w.-]{12,}|:\/\/[^\s/:@]*:[^\s/@]+@/;
const bearer = /\b(?:Bearer|Basic)\s+\S{6,}/i;
const secretOption =
  /^--?[\w-]*(?:token|secret|passw|credential|api[-_]?key|access[-_]?key|private[-_]?key)[\w-]*/i;

/** What is about a secret, but is none. */
const aboutSecret = /(?:count|dir|file|limit|max|mode|name|path|type|url)$/i;

const holdsSecret = (key: 'headers' | 'env', name: string, value: string): boolean =>
  secretsOf({ servers: { one: { [key]: { [name]: value } } } }, []).length > 0;

function inMap(server: Tree, key: 'headers' | 'env'): readonly string[] {
  const values = server[key];
  if (!isTree(values)) return [];
  return Object.entries(values)
    .filter(([, value]) => typeof value === 'string' && !isReference(value))
    .filter(([name, value]) => holdsSecret(key, name, String(value)) || token.test(String(value)))
    .map(([name]) => name);
}

/** Whether an argument, or what stands behind `--token=` in it, is a secret. */
function isSecretArgument(argument: string, before: string): boolean {
  if (isReference(argument)) return false;
  if (token.test(argument) || bearer.test(argument)) return true;
  const [option] = secretOption.exec(argument) ?? [];
  if (option !== undefined && aboutSecret.test(option)) return false;
  if (option !== undefined) return argument.slice(option.length).startsWith('=');
  const isNamed = secretOption.exec(before)?.[0] === before && !aboutSecret.test(before);
  return isNamed && !argument.startsWith('-') && argument !== '';
}

function plainSecrets(name: string, server: Tree): readonly PlainSecret[] {
  const { command, url } = server;
  const words = (Array.isArray(command) ? command : []).map(String);
  const own = variableName(`${name}_token`);
  const isInUrl =
    typeof url === 'string' && !isReference(url) && secretsOf({ servers: { one: { url } } }, []).length > 0;
  return [
    ...inMap(server, 'env').map((key) => ({ place: `env.${key}`, variable: variableName(key) })),
    ...inMap(server, 'headers').map((key) => ({ place: `headers.${key}`, variable: own })),
    ...words.flatMap((word, at) =>
      isSecretArgument(word, words[at - 1] ?? '') ? [{ place: `command[${at}]`, variable: own }] : [],
    ),
    ...(isInUrl ? [{ place: 'url', variable: own }] : []),
  ];
}

/** One sentence about a server's plain secrets; undefined where it has none. */
export function plainSecretsNote(name: string, server: Tree): string | undefined {
  const found = plainSecrets(name, server);
  const [first] = found;
  if (first === undefined) return undefined;
  const places = found.map(({ place }) => place).join(', ');
  return `warning: a secret in plain text (${places}): better a variable, written \${${first.variable}}`;
}
