/** Which texts of a config must never be logged or shown. */
import { isTree } from './tree.ts';

/** Shorter values would mask ordinary words all over. */
const secretLengthMin = 6;

const secretName =
  /authorization|cookie|token|secret|passw|credential|api[-_]?key|access[-_]?key|private[-_]?key|[-_]key$|^key$/i;

const secretValues = (named: unknown): readonly string[] =>
  isTree(named)
    ? Object.entries(named).flatMap(([name, value]) =>
        secretName.test(name) && typeof value === 'string' ? [value] : [],
      )
    : [];

function queryValues(url: unknown): readonly string[] {
  if (typeof url !== 'string' || !URL.canParse(url)) return [];
  return [...new URL(url).searchParams].flatMap(([name, value]) => (secretName.test(name) ? [value] : []));
}

/** `Bearer abc` is secret as a whole, and so is `abc` wherever it stands alone. */
const withoutScheme = (value: string): readonly string[] => {
  const [, credentials] = /^[A-Za-z][A-Za-z0-9-]* +(\S.*)$/s.exec(value) ?? [];
  return credentials === undefined ? [value] : [value, credentials];
};

/** A secret as it looks in a line of a log, in JSON and in a URL. */
const spellings = (value: string): readonly string[] => [
  value,
  JSON.stringify(value).slice(1, -1),
  ...(/\p{Surrogate}/u.test(value) ? [] : [encodeURIComponent(value)]),
  ...value.split(/\r?\n/),
];

/** Every secret of a config: what was filled in, and what stands under a name that says so. Longest first. */
export function secretsOf(tree: unknown, fromSources: readonly string[]): readonly string[] {
  const root = isTree(tree) ? tree : {};
  const servers = isTree(root['servers']) ? Object.values(root['servers']).filter(isTree) : [];
  const named = servers.flatMap(({ headers, env, url }) => [
    ...secretValues(headers),
    ...secretValues(env),
    ...queryValues(url),
  ]);
  const metrics = isTree(root['metrics']) ? root['metrics'] : {};
  const own = [root['secret'], metrics['token']].filter((value) => typeof value === 'string');
  const all = [...fromSources, ...own, ...named.flatMap(withoutScheme)].flatMap(spellings);
  return [...new Set(all)]
    .filter(({ length }) => length >= secretLengthMin)
    .toSorted((a, b) => b.length - a.length || (a < b ? -1 : 1));
}
