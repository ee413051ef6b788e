/** Faults that the fuzzer must find: each is one change of the source, made in a copy of it. */

export interface Fault {
  readonly name: string;
  /** Below src. */
  readonly file: string;
  /** Stands once in the file. */
  readonly find: string;
  readonly replace: string;
}

export const faults: readonly Fault[] = [
  {
    name: 'scanner: a quote behind two backslashes counts as escaped',
    file: 'protocol/json.ts',
    find: 'return (next - slashes) % 2 === 0 ? next : next + 1;',
    replace: 'return next === slashes ? next : next + 1;',
  },
  {
    name: 'scanner: a number may begin with more than one zero',
    file: 'protocol/json.ts',
    find: 'i = b[i] === 0x30 ? i + 1 : skipDigits(b, i);',
    replace: 'i = skipDigits(b, i);',
  },
  {
    name: 'scanner: a control character passes in a string',
    file: 'protocol/json.ts',
    find: 'if (c === undefined || (strict && c < 0x20)) throw syntax(i);',
    replace: 'if (c === undefined || (strict && c < 0x1f)) throw syntax(i);',
  },
  {
    name: 'scanner: a comma may stand before the end of an array',
    file: 'protocol/json.ts',
    find: `    i = skipSpace(b, skipValue(b, i, options, depth + 1));
    if (b[i] === closeBracket) return i + 1;
    if (b[i] !== comma) throw syntax(i);
    i = skipSpace(b, i + 1);`,
    replace: `    i = skipSpace(b, skipValue(b, i, options, depth + 1));
    if (b[i] === closeBracket) return i + 1;
    if (b[i] !== comma) throw syntax(i);
    i = skipSpace(b, i + 1);
    if (b[i] === closeBracket) return i + 1;`,
  },
  {
    name: 'scanner: the duplicate of a member goes unseen where it is spelled with escapes',
    file: 'protocol/json.ts',
    find: 'const known = plain ?? (skipped < 0 ? knownAs(stringAt(b, i, keyEnd), shape) : undefined);',
    replace: 'const known = plain;',
  },
  {
    name: 'scanner: a remembered _meta is read where it stood before',
    file: 'protocol/usual-meta.ts',
    find: 'if (start !== usual.start) {',
    replace: 'if (start < usual.start) {',
  },
  {
    name: 'splicer: edits that come in another order are not sorted',
    file: 'protocol/splice.ts',
    find: 'if (start < at) return false;',
    replace: 'if (start < at - 9) return false;',
  },
  {
    name: 'splicer: a single byte behind the last edit gets lost',
    file: 'protocol/splice.ts',
    find: 'if (at < source.length) pieces.push(source.subarray(at));',
    replace: 'if (at < source.length - 1) pieces.push(source.subarray(at));',
  },
  {
    name: 'splicer: a CR without an LF stays in a line',
    file: 'protocol/splice.ts',
    find: 'if (bytes.indexOf(0x0a) < 0 && bytes.indexOf(0x0d) < 0) return bytes;',
    replace: 'if (bytes.indexOf(0x0a) < 0) return bytes;',
  },
  {
    name: 'splicer: a long answer whose backslash ends a chunk takes the next quote for the end',
    file: 'protocol/answer-stream.ts',
    find: '    const out = this.#out;\n    this.#out = [];',
    replace: '    const out = this.#out;\n    this.#escaped = false;\n    this.#out = [];',
  },
  {
    name: 'decoder: a CR and an LF in two chunks are two line ends',
    file: 'protocol/sse.ts',
    find: 'const isSecondHalf = this.#endedInCr && end === start && end === nextLf;',
    replace: 'const isSecondHalf = this.#endedInCr && end === start && end === nextLf && start > 0;',
  },
  {
    name: 'decoder: all spaces behind the colon go',
    file: 'protocol/sse.ts',
    find: 'return start < end && from[start] === space ? start + 1 : start;',
    replace:
      'return start + 1 < end && from[start] === space ? start + (from[start + 1] === space ? 2 : 1) : start;',
  },
  {
    name: 'decoder: the type of an event that had no data stays for the next',
    file: 'protocol/sse.ts',
    find: "    this.#type = '';\n    this.#retryMs = undefined;\n    if (lines.length === 0) return;",
    replace: "    this.#retryMs = undefined;\n    if (lines.length === 0) return;\n    this.#type = '';",
  },
  {
    name: 'decoder: a field whose name only begins with data counts as data',
    file: 'protocol/sse.ts',
    find: '(end - start === 4 || from[start + 4] === colon)',
    replace: '(end - start === 4 || from[start + 4] !== 0x20)',
  },
  {
    name: 'lines: a CR in the middle ends a line that lies in several chunks',
    file: 'protocol/lines.ts',
    find: 'const line = Buffer.concat(this.#parts, this.#bytes);',
    replace:
      'const joined = Buffer.concat(this.#parts, this.#bytes);\n    const line = joined.subarray(0, joined.indexOf(cr) < 0 ? joined.length : joined.indexOf(cr));',
  },
  {
    name: 'HTTP: a CR and an LF in two chunks end no line',
    file: 'upstream/http1-reader.ts',
    find: 'const end = bytes.indexOf(lineEnd, Math.max(from, held - 1));',
    replace: 'const end = bytes.indexOf(lineEnd, Math.max(from, held));',
  },
  {
    name: 'HTTP: a head that was seen before is followed by its body, however short it is',
    file: 'upstream/http1-reader.ts',
    find: 'if (this.#left === 0 || end !== length || this.#sink.isPaused) return again.bytes;',
    replace: 'if (this.#left === 0 || end < length || this.#sink.isPaused) return again.bytes;',
  },
  {
    name: 'HTTP: a length beside chunks passes',
    file: 'upstream/http1-head.ts',
    find: 'if (coding !== undefined) {\n    if (length !== undefined)',
    replace: 'if (coding !== undefined) {\n    if (length === null)',
  },
];
