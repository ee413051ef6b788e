/** The plain data of a config, and where in it a value stands. */

export type Path = readonly (string | number)[];

export type Tree = Readonly<Record<string, unknown>>;

export const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A path as a person writes it: `servers.github.args[1]`. */
export const pathText = (path: Path): string =>
  path.map((key, at) => (typeof key === 'number' ? `[${key}]` : at === 0 ? key : `.${key}`)).join('');

/** Whether `path` is `start`, or lies below it. */
export const isAtOrBelow = (path: Path, start: Path): boolean => start.every((key, at) => path[at] === key);
