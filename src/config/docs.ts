/** The reference of the config as a page of Markdown, made from the schema. */
import { type JsonSchema, plainSchema } from './json-schema.ts';

const introduction = `# Configuration

<!-- Made from the schema by \`npm run docs\`: change src/config/schema.ts, not this page. -->

mcpyard reads one YAML file (JSON is YAML too): the one that \`-c\` names, else \`./config.yaml\`, else
\`$XDG_CONFIG_HOME/mcpyard/config.yaml\` (\`~/.config\` where that variable is not set). No key is required. An unknown key, a
key that is there twice and a value of the wrong kind are errors, and all of them are reported at once, each with its place:

\`\`\`
config.yaml:5:10 servers.github.url: expected an http:// or https:// URL
config.yaml:6:5 servers.github.timeot: unknown key; did you mean \`timeout\`?
\`\`\`

## Values

- A duration is \`500ms\`, \`30s\`, \`5m\` or \`1h\`; a size is \`64KiB\`, \`4MiB\` or \`1GiB\` (\`100B\` too); a count is a plain number.
- \`\${NAME}\` in a string is filled in from the environment, \`\${NAME:-default}\` with a default where the variable is unset or
  empty, \`\${file:/path}\` from a file, without the line end after its last line. A relative path starts at the folder of the config.
  \`$\${\` is a literal \`\${\`; \`$5\` and \`$HOME\` stay as they are. Keys are never filled in, and what was filled in is not read
  again, neither as YAML nor for more references. In a list or map in brackets, put such a value in quotes.
- A variable that is not set, or a file that can't be read, disables the server in whose settings it stands, loudly: the others run,
  and \`mcpyard check\` exits 1. Anywhere else it stops the start.
- What was filled in is masked in logs and on the status page, and so are values of headers, environment variables and URL
  parameters whose name says that they are secret.
- In a \`command\` that is one string without \`args\`, words are split as in a shell ('…', "…" and \\\\), but nothing is expanded and no
  shell runs; a value that was filled in never splits. The relative path of a program (with a slash in it) starts at the folder of the config.
`;

const code = (text: string): string => `\`${text}\``;

function literal(value: unknown): string {
  if (Array.isArray(value))
    return value.length === 0 ? code('[]') : value.map((item) => code(String(item))).join(', ');
  if (typeof value === 'object' && value !== null) return code('{}');
  return code(value === '' ? '""' : String(value));
}

function typeOf(schema: JsonSchema): string {
  const named = schema['x-type'];
  if (named !== undefined) return named;
  if (schema.enum !== undefined) return schema.enum.map(code).join(', ');
  if (schema.type === 'array') return `list of ${typeOf(schema.items ?? {})}s`;
  if (schema.type === 'boolean') return 'true or false';
  return schema.type ?? 'any';
}

const defaultOf = (schema: JsonSchema): string =>
  schema['x-default'] ?? (schema.default === undefined ? '' : literal(schema.default));

function descriptionOf({ description = '', 'x-later': later }: JsonSchema): string {
  if (later === undefined) return description;
  return later === 'it' ? `${description} No effect yet.` : `${description} ${later} has no effect yet.`;
}

const row = (key: string, schema: JsonSchema): readonly string[] =>
  [code(key), typeOf(schema), defaultOf(schema), descriptionOf(schema)].map((cell) =>
    cell.replaceAll('|', '\\|'),
  );

/** A table whose columns line up, as the formatter of this repository leaves it. */
function aligned(rows: readonly (readonly string[])[]): string {
  const [header = []] = rows;
  const widths = header.map((_, at) => Math.max(3, ...rows.map((cells) => cells[at]?.length ?? 0)));
  const line = (cells: readonly string[], fill = ' ') =>
    `| ${widths.map((width, at) => (cells[at] ?? '').padEnd(width, fill)).join(' | ')} |`;
  return [line(header), line([], '-'), ...rows.slice(1).map((cells) => line(cells))].join('\n');
}

const isSection = ({ properties }: JsonSchema): boolean => properties !== undefined;
const isMapOfSections = ({ additionalProperties }: JsonSchema): boolean =>
  typeof additionalProperties === 'object' && isSection(additionalProperties);

function table(schema: JsonSchema): string {
  const rows = Object.entries(schema.properties ?? {})
    .filter(([, field]) => !isSection(field) && !isMapOfSections(field))
    .map(([key, field]) => row(key, field));
  return aligned([['key', 'type', 'default', ''], ...rows]);
}

/** The page of one map of keys, and of the maps in it. */
function section(title: string, schema: JsonSchema): readonly string[] {
  const inner = Object.entries(schema.properties ?? {}).filter(([, field]) => isSection(field));
  return [
    `## ${title}\n\n${schema.description === undefined ? '' : `${schema.description}\n\n`}${table(schema)}\n`,
    ...inner.flatMap(([key, field]) => section(code(`${title.replaceAll('`', '')}.${key}`), field)),
  ];
}

/** docs/configuration.md, whole. */
export function renderConfigurationDocs(): string {
  const root = plainSchema();
  const sections = Object.entries(root.properties ?? {}).flatMap(([key, field]) => {
    if (isSection(field)) return section(code(key), field);
    const each = field.additionalProperties;
    if (typeof each !== 'object' || !isSection(each)) return [];
    return section(code(`${key}.<name>`), {
      ...each,
      ...(field.description === undefined ? {} : { description: field.description }),
    });
  });
  return [introduction, `## Top level\n\n${table(root)}\n`, ...sections].join('\n');
}
