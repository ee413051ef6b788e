/** One header of a request. */
import type { IncomingMessage } from 'node:http';

/** Its value; where it came more than once, all of them with commas between. */
export function header(req: IncomingMessage, name: string): string | undefined {
  const value = req.headers[name];
  return typeof value === 'string' ? value : value?.join(', ');
}
