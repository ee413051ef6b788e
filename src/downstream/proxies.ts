/** Reverse proxies in front of the gateway, and what of their forwarding headers is believed. */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, type Socket } from 'node:net';
import { header } from './header.ts';

export interface Proxies {
  /** Whether the peer is a trusted proxy. */
  isFromProxy(req: IncomingMessage): boolean;
  /** The hosts that a client asked for: X-Forwarded-Host of a trusted proxy, all that it lists, else Host. */
  hostsOf(req: IncomingMessage): readonly string[];
  /** Where a request came from, for the log. */
  originOf(req: IncomingMessage): RequestOrigin;
}

interface RequestOrigin {
  /** The address of the client: the nearest one in X-Forwarded-For that is no trusted proxy, else the peer's. */
  readonly client: string;
  /** The address of the proxy, where there is one. */
  readonly proxy?: string;
  /** What the client spoke to the proxy. */
  readonly proto?: string;
}

const hopsMax = 16;
const listLengthMax = 1_024;

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** Node.js tells peers of a socket for both families as `::ffff:10.0.0.1`. */
const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');

/** An address of X-Forwarded-For, which may come with a port. */
const addressOf = (hop: string): string => {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return plainAddress(bare);
};

const listOf = (value: string | undefined): readonly string[] =>
  value === undefined || value.length > listLengthMax
    ? []
    : value
        .split(',')
        .map((item) => item.trim())
        .slice(-hopsMax);

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    if (bits === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(bits), familyOf(address));
  }
  return list;
}

/** Believes the addresses and blocks given, and nobody else. */
export function createProxies(networks: readonly string[]): Proxies {
  const trusted = blockListOf(networks);
  const isTrusted = (address: string): boolean =>
    isIP(address) !== 0 && trusted.check(address, familyOf(address));
  /** A connection has one peer, and looking it up takes longer than all else of the guard. */
  const known = new WeakMap<Socket, boolean>();
  const isFromProxy = ({ socket }: IncomingMessage): boolean => {
    if (networks.length === 0) return false;
    const found = known.get(socket);
    if (found !== undefined) return found;
    const is = isTrusted(plainAddress(socket.remoteAddress ?? ''));
    known.set(socket, is);
    return is;
  };
  return {
    isFromProxy,
    hostsOf(req) {
      const { host } = req.headers;
      const forwarded = isFromProxy(req) ? header(req, 'x-forwarded-host') : undefined;
      if (forwarded !== undefined) return forwarded.split(',').map((item) => item.trim());
      return host === undefined ? [] : [host];
    },
    originOf(req) {
      const peer = plainAddress(req.socket.remoteAddress ?? '');
      if (!isFromProxy(req)) return { client: peer };
      let client = peer;
      for (const hop of listOf(header(req, 'x-forwarded-for')).toReversed()) {
        const address = addressOf(hop);
        if (isIP(address) === 0) break;
        client = address;
        if (!isTrusted(address)) break;
      }
      const proto = header(req, 'x-forwarded-proto')?.toLowerCase();
      const isKnown = proto === 'http' || proto === 'https';
      return { client, proxy: peer, ...(isKnown ? { proto } : {}) };
    },
  };
}
