/** Who gets in: what the keys about listening, callers and their keys have to do with each other. */
import { type Address, isLoopback, parseAddress } from './address.ts';
import type { Complaint } from './complaints.ts';
import { configSchema, type Settings } from './schema.ts';
import { isTree, type Tree } from './tree.ts';

const tokenLengthMin = 16;

/** What counts where `auth` is not written: keys, where there are any. */
export const authOf = ({ auth, keys }: Pick<Settings, 'auth' | 'keys'>): 'keys' | 'none' =>
  auth ?? (Object.keys(keys).length > 0 ? 'keys' : 'none');

const isOpen = (address: unknown): boolean => {
  const host = typeof address === 'string' ? parseAddress(address)?.host : undefined;
  return host !== undefined && !isLoopback(host);
};

/** Two names for one key would leave open who called. */
function sharedKeys(keys: Readonly<Record<string, unknown>>): readonly Complaint[] {
  const holders = new Map<string, string>();
  return Object.entries(keys).flatMap(([name, value]): readonly Complaint[] => {
    if (typeof value !== 'string') return [];
    const hash = value.toLowerCase();
    const first = holders.get(hash);
    if (first === undefined) holders.set(hash, name);
    return first === undefined
      ? []
      : [{ path: ['keys', name], at: 'value', message: `is the key of \`${first}\` too` }];
  });
}

/** Whether who listens at one of them leaves no room for the other. */
function collide(one: Address, other: Address): boolean {
  if (one.port === 0 || one.port !== other.port) return false;
  const hosts = [one.host, other.host];
  if (one.host === other.host || hosts.includes('::')) return true;
  return hosts.includes('0.0.0.0') && !hosts.some((host) => host.includes(':'));
}

/** What is not written has its default, which may be taken by the other. */
function sharedAddress({ listen, admin }: Tree): readonly Complaint[] {
  const { shape } = configSchema;
  const one = shape.listen.safeParse(listen);
  const other = shape.admin.safeParse(admin);
  if (!one.success || !other.success || !collide(one.data, other.data)) return [];
  const key = admin === undefined ? 'listen' : 'admin';
  const message = `leaves no room for \`${key === 'admin' ? 'listen' : 'admin'}\`, which has the same address: give each a port of its own`;
  return [{ path: [key], at: 'value', message }];
}

/** What a filled-in config has against itself; nobody is let in from other machines by an oversight. */
export function complaintsAboutDoors(filled: unknown): readonly Complaint[] {
  if (!isTree(filled)) return [];
  const { listen, admin, auth } = filled;
  const keys = isTree(filled['keys']) ? filled['keys'] : {};
  const token = isTree(filled['metrics']) ? filled['metrics']['token'] : undefined;
  const of = (key: string, message: string): Complaint => ({ path: [key], at: 'value', message });
  const found = [...sharedAddress(filled), ...sharedKeys(keys)];
  // The schema never sees this one, and a config with no other key would let everybody in.
  if (Object.hasOwn(keys, '__proto__'))
    found.push({ path: ['keys', '__proto__'], at: 'key', message: 'is no name for a caller' });
  if (Object.keys(keys).length > 0) return found;
  if (auth === 'keys') found.push(of('auth', 'there is no key yet: `mcpyard key new NAME` makes one'));
  if (auth !== undefined) return found;
  if (isOpen(listen))
    found.push(
      of(
        'listen',
        'beyond loopback, everybody who reaches this address could call every server: make a key with `mcpyard key new NAME`, or write `auth: none` if that is meant',
      ),
    );
  if (isOpen(admin) && token === undefined)
    found.push(
      of(
        'admin',
        'beyond loopback, everybody who reaches this address could read metrics and the status page: set `metrics: { token: … }`, make a key with `mcpyard key new NAME`, or write `auth: none` if that is meant',
      ),
    );
  return found;
}

const loopbackNames = new Set(['localhost', '127.0.0.1', '[::1]']);

/** What of it is allowed but probably not meant. */
export function warningsAboutDoors(settings: Settings): readonly string[] {
  const { listen, admin, hosts, publicUrl, keys, tls, trustedProxies, metrics } = settings;
  const auth = authOf(settings);
  const isPublic = !isLoopback(listen.host);
  const told: readonly (readonly [boolean, string])[] = [
    [isPublic && auth === 'none', 'auth: is `none`, so everybody who reaches `listen` may call every server'],
    [
      isPublic && auth === 'keys' && tls === undefined && trustedProxies.length === 0,
      'listen: keys reach this address unencrypted: set `tls`, or name the proxy that encrypts in `trustedProxies`',
    ],
    [
      isPublic && publicUrl === undefined && hosts.every((host) => loopbackNames.has(host)),
      'hosts: only loopback names are allowed, so requests from other machines are refused: add the names that clients use, or set `publicUrl`',
    ],
    [
      !isLoopback(admin.host) && auth === 'keys' && metrics.token === undefined,
      'admin: everybody who reaches this address may read `/metrics`, since `metrics.token` is not set',
    ],
    [
      auth === 'none' && Object.keys(keys).length > 0,
      'keys: nobody is asked for one, since `auth` is `none`',
    ],
    [
      metrics.token !== undefined && metrics.token.length < tokenLengthMin,
      `metrics.token: has fewer than ${tokenLengthMin} characters, so it may be guessed`,
    ],
  ];
  return told.flatMap(([isTold, warning]) => (isTold ? [warning] : []));
}
