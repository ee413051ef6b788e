/** Requests as bytes that are ready to be sent; nine digits of them are the id, which the load counts up. */

const placeholder = '100000000';
const modernVersion = '2026-07-28';
export const legacyVersion = '2025-11-25';
export const clientInfo = { name: 'bench', version: '1.0.0' };
const meta = {
  'io.modelcontextprotocol/protocolVersion': modernVersion,
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** The headers of a request of either era, with the session and the key where there are any. */
export function headersOf({ session, version = legacyVersion, key, isModern }, method, name) {
  return {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': isModern ? modernVersion : version,
    ...(isModern ? { 'mcp-method': method, ...(name === undefined ? {} : { 'mcp-name': name }) } : {}),
    ...(session === undefined ? {} : { 'mcp-session-id': session }),
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  };
}

/** A message as JSON; a modern one carries what the specification asks of `_meta`. */
export function messageOf({ isModern }, id, method, params) {
  const all = isModern ? { ...params, _meta: meta } : params;
  return JSON.stringify({ jsonrpc: '2.0', id, method, params: all });
}

/** One HTTP request, and where in it the digits of the id begin. */
export function requestOf(target, method, params) {
  const body = Buffer.from(messageOf(target, Number(placeholder), method, params));
  const lines = [
    `POST ${target.path} HTTP/1.1`,
    `host: 127.0.0.1:${target.port}`,
    ...Object.entries(headersOf(target, method, params.name)).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${body.length}`,
  ];
  const bytes = Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]);
  return { bytes, idAt: bytes.indexOf(`"id":${placeholder}`) + '"id":'.length };
}

/** Requests as both loads read them from a file. */
export const requestsFile = (requests) =>
  Buffer.concat(requests.flatMap(({ bytes, idAt }) => [Buffer.from(`${bytes.length} ${idAt}\n`), bytes]));
