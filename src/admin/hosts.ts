/** Which Host headers the admin listener answers: a page that rebinds its own name to this address is turned away. */
import { hostName, isLoopback } from '../config/address.ts';

const hostForm = /^(\[[0-9A-Fa-f:.]+\]|[^:/@?#\s]+)(?::\d{1,5})?$/;

const withoutBrackets = (name: string): string => name.replace(/^\[(.*)\]$/, '$1');

/**
 * Loopback names, the names given, and the very address that the connection came in on, since scrapers find pods by
 * address and no name can be rebound to spell one.
 */
export function hostCheck(hosts: readonly string[]): (host: string, localAddress: string) => boolean {
  const allowed = new Set(hosts.map((host) => hostName(host) ?? host.toLowerCase()));
  return (host, localAddress) => {
    const name = hostForm.exec(host)?.[1]?.toLowerCase();
    if (name === undefined) return false;
    const bare = withoutBrackets(name);
    return (
      allowed.has(name) || isLoopback(bare) || bare === localAddress.replace(/^::ffff:/, '').toLowerCase()
    );
  };
}
