/** The error that stops a start, or is refused at a reload: everything that is wrong with a config, with positions. */

/** One mistake; `line` and `column` count from 1. */
export interface ConfigIssue {
  readonly line: number;
  readonly column: number;
  /** The key as a person writes it (`servers.github.args[1]`); empty for the whole file. */
  readonly path: string;
  readonly message: string;
}

/** A config that can't be used. The message lists every issue, one a line, each `file:line:column path: what`. */
export class ConfigError extends Error {
  readonly issues: readonly ConfigIssue[];

  constructor(message: string, issues: readonly ConfigIssue[] = [], options?: { cause: unknown }) {
    super(message, options);
    this.name = 'ConfigError';
    this.issues = issues;
  }
}

/** The error for a file whose issues are known; the issues are sorted by their place in it. */
export function configErrorOf(label: string, unsorted: readonly ConfigIssue[]): ConfigError {
  const issues = unsorted.toSorted((a, b) => a.line - b.line || a.column - b.column);
  const lines = issues.map(
    ({ line, column, path, message }) =>
      `${label}:${line}:${column} ${path === '' ? message : `${path}: ${message}`}`,
  );
  return new ConfigError(lines.join('\n'), issues);
}
