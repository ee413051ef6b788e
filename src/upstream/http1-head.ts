/** The head of an HTTP/1.1 response, read strictly (RFC 9112): what two readers could understand in two ways is refused. */
import { type Head, headOf, type ResponseHeaders } from './http-response.ts';

/** What came is no HTTP/1.1, or more of it than anybody may send. */
export class HttpFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'HttpFault';
  }
}

/** How the end of a body is found (RFC 9112, 6.3). */
export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'fixed'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'close' };

export interface ResponseHead extends Head {
  readonly framing: Framing;
  /** Whether the connection may carry another request, as far as the head says. */
  readonly isKept: boolean;
  /** How long the server says that it keeps an idle connection, in milliseconds. */
  readonly keptMs: number | undefined;
}

const statusLine = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
/** One header a line; no folded lines, no space before the colon, no control characters. */
const headerLines = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*(?:\r\n|$))*$/;
const headersMax = 256;
const digits = /^\d{1,15}$/;
const nothing = Buffer.alloc(0);
const none: Framing = { kind: 'none' };
const chunked: Framing = { kind: 'chunked' };
const close: Framing = { kind: 'close' };

/** Reads heads; the same text again is the same head, since what a server answers within a second often differs in its bodies alone. */
export class HeadReader {
  /** With the empty line at its end. */
  #bytes = nothing;
  #head: ResponseHead | undefined;

  /** The last head of an answer, where the first `length` bytes begin with it again, and how long it is. */
  again(buffer: Buffer, length: number): { readonly head: ResponseHead; readonly bytes: number } | undefined {
    const bytes = this.#bytes.length;
    if (this.#head === undefined || bytes > length) return undefined;
    const isSame = buffer.compare(this.#bytes, 0, bytes, 0, bytes) === 0;
    return isSame ? { head: this.#head, bytes } : undefined;
  }

  /** Reads a head without the empty line at its end; throws an HttpFault. */
  read(text: string): ResponseHead {
    const head = readHead(text);
    if (head.status < 200) return head;
    this.#bytes = Buffer.from(`${text}\r\n\r\n`, 'latin1');
    this.#head = head;
    return head;
  }
}

function readHead(text: string): ResponseHead {
  const lineEnd = text.indexOf('\r\n');
  const first = statusLine.exec(lineEnd < 0 ? text : text.slice(0, lineEnd));
  if (first === null) throw new HttpFault('the status line is none of HTTP/1.1');
  const status = Number(first[2]);
  const lines = lineEnd < 0 ? '' : text.slice(lineEnd + 2);
  if (!headerLines.test(lines)) throw new HttpFault('a header line is none of HTTP/1.1');
  const headers = fieldsOf(lines);
  const framing = framingOf(status, headers);
  return { ...headOf(status, headers), framing, ...lifeOf(headers, first[1] === '1') };
}

function fieldsOf(lines: string): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = Object.create(null);
  let count = 0;
  for (let at = 0; at < lines.length; ) {
    const colon = lines.indexOf(':', at);
    const lineEnd = lines.indexOf('\r\n', colon);
    const end = lineEnd < 0 ? lines.length : lineEnd;
    const name = lines.slice(at, colon).toLowerCase();
    const value = lines.slice(colon + 1, end).trim();
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (typeof before === 'string') headers[name] = [before, value];
    else before.push(value);
    if (++count > headersMax) throw new HttpFault(`more than ${headersMax} headers`);
    at = end + 2;
  }
  return headers;
}

function framingOf(status: number, headers: ResponseHeaders): Framing {
  const length = headers['content-length'];
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    if (length !== undefined)
      throw new HttpFault('Content-Length and Transfer-Encoding contradict each other');
    if (typeof coding !== 'string' || coding.toLowerCase() !== 'chunked')
      throw new HttpFault('the Transfer-Encoding is not chunked alone');
  }
  if (length !== undefined && (typeof length !== 'string' || !digits.test(length)))
    throw new HttpFault('the Content-Length is not one number');
  if (status < 200 || status === 204 || status === 304) return none;
  if (coding !== undefined) return chunked;
  return length === undefined ? close : { kind: 'fixed', bytes: Number(length) };
}

const closeToken = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;
const keepToken = /(?:^|,)[ \t]*keep-alive[ \t]*(?:,|$)/i;
const timeout = /(?:^|[\s,;])timeout=(\d{1,9})(?:$|[\s,;])/i;

function lifeOf(headers: ResponseHeaders, isCurrent: boolean): Pick<ResponseHead, 'isKept' | 'keptMs'> {
  const connection = headers['connection'];
  const said = connection === undefined ? '' : String(connection);
  const isKept = said === 'keep-alive' || (isCurrent ? !closeToken.test(said) : keepToken.test(said));
  const kept = headers['keep-alive'];
  const seconds = kept === undefined ? undefined : timeout.exec(String(kept))?.[1];
  return { isKept, keptMs: seconds === undefined ? undefined : Number(seconds) * 1000 };
}
