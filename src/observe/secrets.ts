/** What must never be shown, and how it is hidden in what is logged or shown. */

export const masked = '[masked]';

/** Shorter values would hide ordinary words all over. */
const secretLengthMin = 6;
/** Of reload after reload, the newest are kept. */
const secretsMax = 1_000;

const inJson = (value: string): string => JSON.stringify(value).slice(1, -1);

/** A secret as it looks in plain text, in JSON, in JSON inside of JSON (a body in a line of the log), in a URL, and line by line. */
function spellings(value: string): readonly string[] {
  const once = inJson(value);
  const twice = inJson(once);
  const inUrl = /\p{Surrogate}/u.test(value) ? [] : [encodeURIComponent(value)];
  return [value, once, twice, inJson(twice), ...inUrl, ...value.split(/\r?\n/)];
}

const credentials = /\b(Bearer|Basic)(\s+)[A-Za-z0-9._~+/=-]{6,}/gi;
const userInfo = /(:\/\/)[^\s/?#@"'`]+@/g;

/** The secrets of all configs that were in force since the start; values under 6 characters are ignored. */
export class Secrets {
  readonly #values = new Set<string>();
  #spelled: readonly string[] = [];

  constructor(values: Iterable<string> = []) {
    this.add(values);
  }

  /** Adds those of a new config; what runs on with the old one still has the old ones. */
  add(values: Iterable<string>): void {
    for (const value of values) {
      this.#values.delete(value);
      this.#values.add(value);
    }
    for (const oldest of this.#values) {
      if (this.#values.size <= secretsMax) break;
      this.#values.delete(oldest);
    }
    this.#spelled = [...new Set([...this.#values].flatMap(spellings))]
      .filter(({ length }) => length >= secretLengthMin)
      .toSorted((a, b) => b.length - a.length);
  }

  /** The text with every secret, whatever follows `Bearer` or `Basic`, and whoever stands before the host of a URL, replaced by `[masked]`. */
  readonly mask = (text: string): string => {
    let shown = text;
    for (const secret of this.#spelled) if (shown.includes(secret)) shown = shown.replaceAll(secret, masked);
    return shown.replace(credentials, `$1$2${masked}`).replace(userInfo, `$1${masked}@`);
  };
}
