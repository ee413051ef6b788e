/** What a request is for (RFC 9112, 3.2). */
import type { IncomingMessage } from 'node:http';

const absoluteForm = /^https?:\/\/([^/?#]*)([^#]*)/i;
const slash = 0x2f;

/** Path and query; a whole URL, as clients send it that take this for a proxy, is taken apart, and its host counts instead of `Host`. */
export function targetOf(req: IncomingMessage): string {
  const { url = '/' } = req;
  if (url.charCodeAt(0) === slash) return url;
  const [, host, rest] = absoluteForm.exec(url) ?? [];
  if (host === undefined || rest === undefined) return url;
  req.headers.host = host;
  req.url = rest.charCodeAt(0) === slash ? rest : `/${rest}`;
  return req.url;
}
