/** What browsers ask before they let a page of another origin talk to the listener (CORS of the Fetch standard). */
import type { IncomingMessage, ServerResponse } from 'node:http';

const methods = 'GET, HEAD, POST, DELETE';
/** For so long a browser need not ask again. */
const maxAgeSeconds = '600';
/** What a page may read of an answer, beside its body: the session, why a key is needed, and the name of a download. */
const exposed = 'Mcp-Session-Id, WWW-Authenticate, Content-Disposition';
const headerNames = /^[\w!#$%&'*+.^`|~, -]*$/;

/** Every answer from now on is one that this page may read; its origin has to be an allowed one. */
function share(res: ServerResponse, origin: string): void {
  res.setHeader('Access-Control-Allow-Origin', origin);
  res.setHeader('Access-Control-Expose-Headers', exposed);
  res.setHeader('Vary', 'Origin');
}

function answerPreflight(req: IncomingMessage, res: ServerResponse): void {
  // Which headers a call has depends on its tool (Mcp-Param-*), so those that are asked for are the list.
  const asked = String(req.headers['access-control-request-headers'] ?? '');
  res.setHeader('Access-Control-Allow-Methods', methods);
  if (asked !== '' && headerNames.test(asked)) res.setHeader('Access-Control-Allow-Headers', asked);
  if (req.headers['access-control-request-private-network'] === 'true')
    res.setHeader('Access-Control-Allow-Private-Network', 'true');
  res.setHeader('Access-Control-Max-Age', maxAgeSeconds);
  res.setHeader('Vary', 'Origin, Access-Control-Request-Headers');
  res.writeHead(204);
  res.end();
}

/**
 * For a request whose origin the guard has let in: marks its answer as one that the page may read. A question beforehand
 * (preflight), which carries no key, is answered here and now, and the result is true. Cookies are never allowed.
 */
export function crossOrigin(req: IncomingMessage, res: ServerResponse, origin: string): boolean {
  share(res, origin);
  if (req.method !== 'OPTIONS' || req.headers['access-control-request-method'] === undefined) return false;
  answerPreflight(req, res);
  return true;
}
