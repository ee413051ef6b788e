/** Names of servers, where a client allows what this config does not. */
import { serverNamePattern } from './server-schema.ts';

const lengthMax = 64;

/** The name itself where it is valid, else the nearest that is. */
export function validServerName(name: string): string {
  if (serverNamePattern.test(name) && name.length <= lengthMax) return name;
  const kept = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, lengthMax)
    .replace(/-+$/, '');
  return kept === '' ? 'server' : kept;
}

/** The name, or with the first number behind it that makes it one of its own. */
export function unusedName(name: string, isTaken: (name: string) => boolean): string {
  for (let number = 2, tried = name; ; number += 1) {
    if (!isTaken(tried)) return tried;
    tried = `${name.slice(0, lengthMax - String(number).length - 1)}-${number}`;
  }
}
