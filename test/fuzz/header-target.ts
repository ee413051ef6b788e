/** Header values that mirror the body, and the definitions of tools that say which. */
import { decodeHeader, encodeHeader } from '../../src/protocol/headers.ts';
import { outgoingParamHeaders, paramHeadersOf, paramMismatch } from '../../src/protocol/param-headers.ts';
import { mutatedText, subjectsOf } from './mutations.ts';
import type { Tape } from './tape.ts';
import { must, mustEqual, type Target } from './target.ts';

const texts = [
  'read_file',
  'file:///a/b?c=%20#d',
  'ä🎉',
  '=?base64?YWJj?=',
  '=?base64?',
  ' a',
  'a ',
  '',
  '\t',
  'a\r\nX: y',
];
texts.push(
  '=?base64?4pyTIMOgIGxhIG1vZGU=?=',
  '=?base64?/w==?=',
  '=?base64?eA?=',
  '=?BASE64?YQ==?=',
  'x'.repeat(300),
);
const odd = [...'=?+/AZaz09 \t\r\n\0\u007fé🎉\ud800', '=?base64?', '?=', '=='];

function someValue(tape: Tape): string {
  let value = tape.pick(texts);
  for (let left = tape.below(4); left > 0; left--) {
    const at = tape.below(value.length + 1);
    value =
      value.slice(0, at) + (tape.below(3) === 0 ? '' : tape.pick(odd)) + value.slice(at + tape.below(3));
  }
  return value;
}

/** Slowly, by what may stand there: plain visible ASCII, or Base64 in its one spelling, of UTF-8. */
function wantedText(header: string): string | undefined {
  const isFramed = header.length >= 11 && header.startsWith('=?base64?') && header.endsWith('?=');
  if (!isFramed) {
    const isPlain = [...header].every((c) => c === '\t' || (c >= ' ' && c <= '~'));
    return isPlain && header.trim() === header ? header : undefined;
  }
  const inside = header.slice(9, -2);
  const bytes = Buffer.from(inside, 'base64');
  if (!/^[A-Za-z0-9+/=]*$/.test(inside) || inside.length % 4 !== 0) return undefined;
  // The bits that the padding leaves over may be anything.
  if (bytes.toString('base64').length !== inside.length || !/^[^=]*={0,2}$/.test(inside)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function checkValue(tape: Tape): void {
  const value = someValue(tape);
  mustEqual(decodeHeader(value), wantedText(value), 'a header value', value);
  const header = encodeHeader(value);
  must(/^[\x20-\x7e\t]*$/.test(header) && header.trim() === header, 'what a header may not carry', value);
  // A lone surrogate has no bytes: it becomes the replacement character, as everywhere.
  mustEqual(decodeHeader(header), Buffer.from(value).toString(), 'a value there and back', value);
}

const schemas = subjectsOf([
  '{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"count":{"type":"integer","x-mcp-header":"Count"},"where":{"type":"object","properties":{"city":{"type":"string","x-mcp-header":"City"}}}}}',
  '{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry"},"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}}},"$defs":{"r":{"type":"string"}},"oneOf":[{"required":["dry"]}]}',
]);
const calls = subjectsOf([
  '{"region":"eu-ä","count":5,"where":{"city":"Köln"},"dry":true}',
  '{"region":"us","count":-1.0,"where":{"city":" x "},"dry":false,"list":[{"a":"b"}]}',
]);

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

function checkParams(tape: Tape): void {
  const schema = parsed(mutatedText(schemas, tape));
  // A lone surrogate has no bytes, so no header can carry it.
  const args = parsed(mutatedText(calls, tape).replace(/\\ud[89a-f]../gi, ''));
  const read = paramHeadersOf(schema);
  if (read.kind === 'invalid') return;
  const names = read.headers.map(({ header }) => header);
  must(new Set(names).size === names.length, 'one header for two arguments', schema);
  must(
    names.every((name) => /^mcp-param-[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name)),
    'no header name',
    schema,
  );
  const flat = outgoingParamHeaders(read.headers, new Map([['mcp-param-unknown-one', 'x']]), args);
  const sent = new Map<string, string>();
  for (let i = 0; i < flat.length; i += 2) sent.set((flat[i] ?? '').toLowerCase(), flat[i + 1] ?? '');
  mustEqual(paramMismatch(read.headers, sent, args), undefined, 'what the gateway sends', [schema, args]);
  must(
    sent.get('mcp-param-unknown-one') === 'x' || names.includes('mcp-param-unknown-one'),
    'an unknown header is lost',
    schema,
  );
  const [first] = read.headers;
  if (first === undefined) return;
  const changed = new Map(sent).set(first.header, `${sent.get(first.header) ?? ''}x`);
  must(paramMismatch(read.headers, changed, args) !== undefined, 'a contradiction passed', [schema, args]);
}

export const headerValues: Target = { name: 'header values', weight: 8, check: checkValue };
export const paramHeaders: Target = { name: 'param headers', weight: 6, check: checkParams };
