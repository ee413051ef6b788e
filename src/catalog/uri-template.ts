/** Whether a URI may have come from a template of RFC 6570: enough to find its upstream, in linear time. */

const expression = /\{([+#./;?&]?)[^{}]*\}/g;
const uriLengthMax = 8192;

interface Parsed {
  /** One more than there are expressions. */
  readonly literals: readonly string[];
  /** Whether the value between two literals may hold `/`, `?` and `#`. */
  readonly open: readonly boolean[];
}

function parse(template: string): Parsed {
  const literals: string[] = [];
  const open: boolean[] = [];
  let at = 0;
  for (const match of template.matchAll(expression)) {
    literals.push(template.slice(at, match.index));
    open.push(match[1] !== '');
    at = match.index + match[0].length;
  }
  literals.push(template.slice(at));
  return { literals, open };
}

function fits({ literals, open }: Parsed, uri: string): boolean {
  const first = literals[0] ?? '';
  const last = literals.at(-1) ?? '';
  if (literals.length === 1) return uri === first;
  if (!uri.startsWith(first) || !uri.endsWith(last) || uri.length < first.length + last.length) return false;
  const end = uri.length - last.length;
  let at = first.length;
  for (let i = 0; i < open.length; i++) {
    const next = literals[i + 1] ?? '';
    const to = i === open.length - 1 ? end : uri.indexOf(next, at);
    if (to < at || to > end) return false;
    if (!open[i] && /[/?#]/.test(uri.slice(at, to))) return false;
    at = to + next.length;
  }
  return true;
}

/** Whether the scheme itself is an expression, so that any URI might fit. */
export const hasOpenScheme = (template: string): boolean => /^[^:{]*\{/.test(template);

/** A URI of the template, to find out whether another one claims it too. */
export const sampleOf = (template: string): string => template.replace(expression, 'x');

/** A test for URIs, or undefined where the scheme is an expression. */
export function templateTest(template: string): ((uri: string) => boolean) | undefined {
  if (hasOpenScheme(template)) return undefined;
  const parsed = parse(template);
  return (uri) => uri.length <= uriLengthMax && fits(parsed, uri);
}
