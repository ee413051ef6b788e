/** Who may talk to the listener at all: Host and Origin, against DNS rebinding (Streamable HTTP, "Security & Endpoint"). */
import type { IncomingMessage } from 'node:http';
import { kindOf } from './inbound-request.ts';
import { createProxies, type Proxies } from './proxies.ts';

export interface GuardOptions {
  /** Host names in lower case, without port. */
  readonly hosts: readonly string[];
  /** Whole origins, such as `https://app.example`; loopback origins are always allowed. */
  readonly origins: readonly string[];
  /** The URL seen from outside: its host and its origin are allowed. */
  readonly publicUrl?: string;
  /** Whose word counts for the host that was asked for; nobody's without it. */
  readonly proxies?: Proxies;
}

export interface Refused {
  readonly status: 400 | 403;
  readonly message: string;
}

const loopback = ['localhost', '127.0.0.1', '[::1]'];
const originForm = /^https?:\/\/(\[[0-9a-f:]+\]|[^/:@?#]+)(?::\d{1,5})?$/;
const hostForm = /^(\[[0-9A-Fa-f:.]+\]|[^:/@?#\s]+)(?::\d{1,5})?$/;

/** Node.js takes the first of several, and a proxy before it may take another (RFC 9112, 3.2). */
function standsTwice(rawHeaders: readonly string[], name: string): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const found = rawHeaders[at];
    if (found?.length === name.length && found.toLowerCase() === name) count += 1;
  }
  return count > 1;
}

/** Names are compared without case and port; of several hosts that a proxy tells, each has to be allowed. */
export function createGuard(options: GuardOptions): (req: IncomingMessage) => Refused | undefined {
  const outside = options.publicUrl === undefined ? [] : [new URL(options.publicUrl)];
  const hosts = new Set([...options.hosts, ...outside.map(({ hostname }) => hostname)]);
  const origins = new Set(
    [...options.origins, ...outside.map(({ origin }) => origin)].map((origin) => origin.toLowerCase()),
  );
  const { hostsOf, isFromProxy } = options.proxies ?? createProxies([]);
  /** Nearly all clients ask for the same. */
  let allowed: string | undefined;
  const isHost = (value: string): boolean => {
    if (value === allowed) return true;
    if (!isNamed(value)) return false;
    allowed = value;
    return true;
  };
  const isNamed = (value: string): boolean => {
    const name = hostForm.exec(value)?.[1]?.toLowerCase();
    return name !== undefined && (hosts.has(name) || hosts.has(value.toLowerCase()));
  };
  const isOrigin = (value: string): boolean => {
    const origin = value.toLowerCase();
    const name = originForm.exec(origin)?.[1];
    return origins.has(origin) || (name !== undefined && loopback.includes(name));
  };
  /** The last that was allowed, once and straight from the client. */
  const isUsual = (req: IncomingMessage): boolean => {
    const { host } = req.headers;
    return host !== undefined && host === allowed && kindOf(req) !== undefined && !isFromProxy(req);
  };
  const refusedHost = (req: IncomingMessage): Refused | undefined => {
    const asked = hostsOf(req);
    if (asked.length === 0) return { status: 400, message: 'Host is missing' };
    if (standsTwice(req.rawHeaders, 'host')) return { status: 400, message: 'Host stands twice' };
    const strange = asked.find((host) => !isHost(host));
    if (strange === undefined) return undefined;
    return {
      status: 403,
      message: `Host ${JSON.stringify(strange.slice(0, 100))} is not allowed (see hosts)`,
    };
  };
  return (req) => {
    const { origin } = req.headers;
    const refused = isUsual(req) ? undefined : refusedHost(req);
    if (refused !== undefined) return refused;
    if (origin !== undefined && !isOrigin(origin))
      return {
        status: 403,
        message: `Origin ${JSON.stringify(origin.slice(0, 100))} is not allowed (see origins)`,
      };
    return undefined;
  };
}
