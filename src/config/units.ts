/** Durations and sizes as the config writes them, and what they are in milliseconds and bytes. */

export const durationPattern = /^(\d+)(ms|s|m|h)$/;
export const sizePattern = /^(\d+)(B|KiB|MiB|GiB)$/;

/** The longest wait that a timer of Node.js can be set to; a longer one would fire at once. */
export const durationMsMax = 2 ** 31 - 1;

const msPerUnit = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

const bytesPerUnit = new Map([
  ['B', 1],
  ['KiB', 1024],
  ['MiB', 1024 ** 2],
  ['GiB', 1024 ** 3],
]);

function amount(text: string, pattern: RegExp, units: ReadonlyMap<string, number>): number | undefined {
  const [, digits, unit] = pattern.exec(text) ?? [];
  const factor = units.get(unit ?? '');
  if (digits === undefined || factor === undefined) return undefined;
  const value = Number(digits) * factor;
  return Number.isSafeInteger(value) ? value : undefined;
}

/** Milliseconds of `500ms`, `30s`, `5m` or `1h`; undefined for anything else. */
export const durationMs = (text: string): number | undefined => amount(text, durationPattern, msPerUnit);

/** Bytes of `100B`, `64KiB`, `4MiB` or `1GiB`; undefined for anything else. */
export const sizeBytes = (text: string): number | undefined => amount(text, sizePattern, bytesPerUnit);
