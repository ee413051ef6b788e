/** Every key of the config: the only place of its type, its default and its documentation. */
import { z } from 'zod';
import {
  count,
  documented,
  duration,
  host,
  httpUrl,
  keyHash,
  listenAddress,
  network,
  origin,
  size,
  text,
  workerCount,
} from './fields.ts';
import { anonymous, callerNamePattern } from './key-hash.ts';
import { serverNamePattern, serverSchema } from './server-schema.ts';

const names = z.strictObject({
  separator: documented(
    z
      .string()
      .regex(/^[A-Za-z0-9_.-]{0,16}$/, { error: 'expected up to 16 letters, digits, _, . and -' })
      .default('__'),
    'What stands between the prefix of a server and the name of its tool or prompt.',
  ),
  max: documented(
    count(24, 128).default(50),
    'The longest public name; a longer one is cut and ends in a short, stable hash (model APIs refuse more than 64, and clients put a prefix of their own before it).',
  ),
});

const lists = z.strictObject({
  deadline: documented(
    duration().prefault('5s'),
    'How long a list waits for slow upstreams before it goes out without them.',
  ),
  pageSize: documented(
    count().default(1000),
    'How many items are on one page of a list that goes out (many clients never ask for the second).',
  ),
});

const cache = z.strictObject({
  defaultTtl: documented(
    duration(0).prefault('60s'),
    'How long clients may keep a list of a server that says nothing about it.',
  ),
  max: documented(size().prefault('64MiB'), 'The memory that cached answers may take.'),
});

const probe = z.strictObject({
  interval: documented(
    duration().prefault('30s'),
    'How often an upstream that has no call in flight is asked whether it is there; one that does not answer twice is started again.',
  ),
  timeout: documented(duration().prefault('10s'), 'How long its answer is waited for.'),
});

const limits = z.strictObject({
  body: documented(size().prefault('8MiB'), 'The longest body of a request.'),
  bodies: documented(
    size().prefault('256MiB'),
    'How many bytes all requests may have together that are still being received.',
  ),
  holdBytes: documented(
    size().prefault('256KiB'),
    'Up to which length an answer is held and checked whole before it is sent; a longer one streams.',
  ),
  result: documented(
    size().prefault('64MiB'),
    'The longest answer of an upstream: a line of a child, an event of a stream, a body, a page of a list.',
  ),
  callsInFlight: documented(count().default(10_000), 'How many calls may be unanswered at once.'),
  instances: documented(
    count().default(50),
    'For how many callers at once each server with `isolation: caller` may run.',
  ),
  listenStreams: documented(count().default(20_000), 'How many listen streams may be open at once.'),
  pages: documented(count().default(100), "How many pages of one upstream's list are followed."),
  listItems: documented(count().default(10_000), "How many items of one upstream's list are kept."),
  nesting: documented(count(8, 1_000).default(128), 'How deep the JSON of a message may be nested.'),
  sseBuffer: documented(
    size().prefault('4MiB'),
    'How many bytes may wait for one slow client before its stream is dropped.',
  ),
});

const log = z.strictObject({
  level: documented(
    z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
    'The least important lines that are logged.',
  ),
  calls: documented(
    z.enum(['off', 'errors', 'all']).default('errors'),
    'Of which calls there is a line (who, what, how long and how, never what was said): of none, of those that failed (20 a second at most), or of all.',
  ),
});

const callerName = z
  .string()
  .regex(callerNamePattern, {
    error: 'a caller is named with up to 64 letters, digits, _, ., @ and -, the first a letter or a digit',
  })
  .refine((name) => name !== anonymous, {
    error: `\`${anonymous}\` is what callers without a key are called`,
  });

const tls = z.strictObject({
  cert: documented(
    text('a path'),
    'The file with the certificate in PEM, and those between it and the root behind it.',
    { type: 'path' },
  ),
  key: documented(text('a path'), 'The file with the private key of the certificate in PEM.', {
    type: 'path',
  }),
});

const metrics = z.strictObject({
  token: documented(
    text('a token')
      .regex(/^[\x21-\x7e]*$/, { error: 'expected visible ASCII characters without spaces' })
      .optional(),
    'The bearer token that `/metrics` asks for, usually filled in from the environment or a file.',
    { fallback: 'none is asked for' },
  ),
});

const serverName = z
  .string()
  .regex(serverNamePattern, {
    error: 'a server is named with letters, digits, _ and -, the first a letter or a digit',
  })
  .max(64, { error: "a server's name has at most 64 characters" });

export const configSchema = z.strictObject({
  listen: documented(
    listenAddress().prefault('127.0.0.1:8808'),
    'Where clients connect (`/mcp`); port 0 picks a free one.',
  ),
  admin: documented(
    listenAddress().prefault('127.0.0.1:9808'),
    'Where `/metrics` and the status page are; port 0 picks a free one.',
  ),
  hosts: documented(
    z.array(host()).prefault(['localhost', '127.0.0.1', '[::1]']),
    'The names that the Host header of a request may hold, whatever its port; a list of your own replaces the default.',
  ),
  origins: documented(
    z.array(origin()).prefault([]),
    'The origins of web pages that may send requests and read the answers (CORS), beside pages from loopback itself.',
  ),
  publicUrl: documented(
    httpUrl().optional(),
    'The URL of the gateway as clients see it from outside; its host counts as one of `hosts`, and its origin as one of `origins`.',
    { fallback: 'none' },
  ),
  trustedProxies: documented(
    z.array(network()).prefault([]),
    'The addresses of reverse proxies whose X-Forwarded-Host, -For and -Proto are believed, instead of Host for what `hosts` allows and in the log.',
  ),
  keys: documented(
    z.record(callerName, keyHash()).prefault({}),
    'Who may call, by name: the SHA-256 hash of the key that a caller sends as `Authorization: Bearer`; `mcpyard key new NAME` makes a key and writes its hash here.',
    { type: 'map of hashes' },
  ),
  auth: documented(
    z.enum(['keys', 'none']).optional(),
    'Whether a caller needs one of the `keys`, or everybody who can reach `listen` may call (`none`).',
    {
      fallback: '`keys` where there are any, else `none`, which has to be written to listen beyond loopback',
    },
  ),
  tls: documented(
    tls.optional(),
    'HTTPS on `listen`; relative paths start at the folder of the config file, and changed files are taken in without a restart.',
  ),
  metrics: documented(metrics.prefault({}), 'Access to metrics.'),
  stateDir: documented(
    text('a path').optional(),
    'The folder for what has to outlive a restart; a relative one starts at the folder of the config file.',
    { type: 'path', fallback: '`$STATE_DIRECTORY`, else mcpyard in the XDG state folder' },
  ),
  secret: documented(
    text('a secret').optional(),
    'The key of all seals, at least 32 characters that nobody can guess; replicas share one.',
    { fallback: 'made once and kept in `stateDir`' },
  ),
  legacySse: documented(
    z.boolean().default(false),
    'Whether clients that know nothing newer than the HTTP+SSE of 2024-11-05 are served too, at `/sse` and `/messages`.',
  ),
  workers: documented(
    workerCount().default(1),
    'How many processes serve `listen` together, where one core is not enough for the calls; `auto` is one for each core. Another number takes a restart.',
  ),
  names: documented(names.prefault({}), 'Public names.'),
  lists: documented(lists.prefault({}), 'Lists that clients ask for.'),
  cache: documented(cache.prefault({}), 'The cache of lists and reads.'),
  probe: documented(probe.prefault({}), 'Health checks of upstreams.'),
  drainTimeout: documented(
    duration(0).optional(),
    'How long calls in flight may go on after the gateway was told to stop.',
    { fallback: '25s on SIGTERM, 2s on SIGINT' },
  ),
  limits: documented(
    limits.prefault({}),
    'What is refused past a limit gets a clear error, and the counter of that limit goes up.',
  ),
  log: documented(log.prefault({}), 'The log, on stderr.'),
  servers: documented(
    z.record(serverName, serverSchema).default({}),
    'The servers behind the gateway, by name (letters, digits, `_` and `-`); the order here is the order of their tools in lists.',
  ),
});

export type Settings = z.output<typeof configSchema>;
