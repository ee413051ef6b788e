/** What the mock says in its results, and what every answer is checked for. The same bytes are in native/replies.h. */

const line = 'A line of what a tool said, with \\"quotes\\", café and €.\\n';
const lineBytes = Buffer.byteLength(line);

/** The text of a result as it stands in JSON, this many bytes long. */
export function textOf(bytes) {
  const lines = Math.floor(bytes / lineBytes);
  return line.repeat(lines) + 'x'.repeat(bytes - lines * lineBytes);
}

/** The part of a result of `tools/call` that must come through untouched. */
export const expectedCall = (bytes) => Buffer.from(`"text":"${textOf(bytes)}"`);
