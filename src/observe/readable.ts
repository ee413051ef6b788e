/** A log line as a person at a terminal wants it. */

/** Control characters could move the cursor or hide what stands there; only line ends stay. */
const control = /[^\P{Cc}\n]/gu;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** `12:00:01 INFO  everything: up` from pino's JSON; a line that isn't JSON stays as it is. Ends with a line end. */
export function readable(line: string): string {
  let entry: unknown;
  try {
    entry = JSON.parse(line);
  } catch {
    return line;
  }
  if (!isObject(entry)) return line;
  const { time, level, msg, upstream, err, ...rest } = entry;
  const at = new Date(String(time)).toTimeString().slice(0, 8);
  const message = String(msg ?? '');
  const name = typeof upstream === 'string' && !message.startsWith(`${upstream}: `) ? `${upstream}: ` : '';
  const fields = Object.entries(rest).map(([key, value]) => ` ${key}=${shown(value)}`);
  const head = `${at} ${String(level).toUpperCase().padEnd(5)} ${name}${message}${fields.join('')}`;
  const lines = [head, ...errorLines(err)].join('\n');
  return `${lines.replace(control, ' ').replaceAll('\n', '\n  ')}\n`;
}

const shown = (value: unknown): string =>
  typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);

/** The error, then what it was caused by, innermost last. */
function errorLines(err: unknown): readonly string[] {
  if (!isObject(err)) return err === undefined ? [] : [shown(err)];
  const said = `${String(err['type'])}: ${String(err['message'])}`;
  const stack = err['stack'];
  const first = typeof stack === 'string' ? stack : said;
  const errors = Array.isArray(err['errors']) ? err['errors'] : [];
  const causes = [err['cause'], ...errors].filter((cause) => cause !== undefined && cause !== null);
  return [
    first,
    ...causes.flatMap((cause) => errorLines(cause).map((line, at) => (at === 0 ? `because ${line}` : line))),
  ];
}
