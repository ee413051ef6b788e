/** Addresses to listen on, and what counts as loopback. */
import { BlockList, isIP } from 'node:net';

export interface Address {
  /** A host name or an IP address, IPv6 without brackets. */
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

/** Reads `HOST:PORT` or `[IPV6]:PORT`; an empty host or `*` is every interface. Undefined for anything else. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]*|\*)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const [, inBrackets, plain, digits] = match;
  const port = Number(digits);
  if (port > 65_535) return undefined;
  if (inBrackets !== undefined) return isIP(inBrackets) === 6 ? { host: inBrackets, port } : undefined;
  return {
    host: plain === '' || plain === '*' || plain === undefined ? '0.0.0.0' : plain.toLowerCase(),
    port,
  };
}

/** Whether only this machine can reach a listener on the host. */
export function isLoopback(host: string): boolean {
  if (isIP(host) === 0) return host === 'localhost';
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8, 'ipv4');
  loopback.addAddress('::1', 'ipv6');
  return loopback.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4');
}

/** Whether the text is an IP address or a CIDR block such as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32));
}

/** Whether each server reads the path alike: no empty or dot segments, nothing encoded, no backslashes. */
export const isPlainPath = (path: string): boolean =>
  /^\/[\x21-\x7e]*$/.test(path) && !/[\\%?#]|\/\/|\/\.{1,2}(?:[/;]|$)/.test(path);

/** A name as the Host header has it: lower case, no port, IPv6 in brackets. Undefined where it can't be one. */
export function hostName(text: string): string | undefined {
  const name = text.toLowerCase();
  if (isIP(name) === 6) return `[${name}]`;
  if (/^\[.+\]$/.test(name)) return isIP(name.slice(1, -1)) === 6 ? name : undefined;
  return /^[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?$/.test(name) ? name : undefined;
}

/** An Origin as browsers send it (scheme, host and a port that isn't the default); undefined where it can't be one. */
export function originOf(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const bare = `${url.protocol}//${url.host}`;
  return url.host !== '' && (url.href === bare || url.href === `${bare}/`) ? bare : undefined;
}
