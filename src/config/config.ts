/** The config as the code works with it: complete, checked, durations in milliseconds, sizes in bytes, never changed. */
import type { Address } from './address.ts';

/** A child process: the gateway runs `command` with `args`, verbatim, in `cwd`. */
export interface StdioTarget {
  readonly kind: 'stdio';
  /** A program to look up in PATH, or an absolute path. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absolute. */
  readonly cwd: string;
}

/** A server that is reached over HTTP; header names as they were written. */
export interface HttpTarget {
  readonly kind: 'http';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly transport: 'auto' | 'streamable-http' | 'sse';
}

/** A child process that another process runs, which is asked for it; never in a file. */
export interface OwnedTarget {
  readonly kind: 'owned';
  /** The path of the owner's Unix socket. */
  readonly socket: string;
  readonly token: string;
  /** Another one where another program runs. */
  readonly digest: string;
}

export interface ServerConfig {
  readonly name: string;
  /** What goes before a local name, separator included; empty for none. */
  readonly prefix: string;
  /** Globs and renames by the server's own names; without `allow` every tool is. */
  readonly tools: {
    readonly allow?: readonly string[];
    readonly deny: readonly string[];
    readonly rename: Readonly<Record<string, string>>;
  };
  readonly isolation: 'shared' | 'caller';
  /** `file:` URIs. */
  readonly roots: readonly string[];
  readonly startTimeoutMs: number;
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  /** Absent where an idle server is kept. */
  readonly idleTimeoutMs?: number;
  /** Whether a call that may have run is sent once more where its tool says that this does no harm. */
  readonly retry: 'off' | 'idempotent';
  /** How long it is waited before it is started again, and after how long up that begins anew. */
  readonly restart: { readonly initialMs: number; readonly maxMs: number; readonly stableMs: number };
  /** Calls that may be at it at once, and wait for that. */
  readonly concurrency: { readonly max: number; readonly queueMax: number; readonly queueMs: number };
  /** After how many failures in a row it is not asked for a while; 0 for never. */
  readonly breaker: {
    readonly failures: number;
    readonly cooldownMs: number;
    readonly cooldownMaxMs: number;
  };
  /** Prefixes of paths at the origin of the target's URL. */
  readonly passthrough: readonly string[];
  /** Whether requests to those paths carry the target's headers. */
  readonly passthroughHeaders: boolean;
  readonly target: StdioTarget | HttpTarget | OwnedTarget;
}

/** A server of the config that is not used: switched off there, or for want of a value that could not be filled in. */
export interface DisabledServer {
  readonly name: string;
  readonly kind: 'off' | 'unfilled';
  readonly reason: string;
}

interface Limits {
  readonly bodyBytesMax: number;
  readonly bodiesBytesMax: number;
  readonly holdBytes: number;
  readonly resultBytesMax: number;
  readonly callsInFlightMax: number;
  readonly instancesMax: number;
  readonly listenStreamsMax: number;
  readonly pagesMax: number;
  readonly listItemsMax: number;
  readonly nestingMax: number;
  readonly sseBufferBytesMax: number;
}

export interface Config {
  readonly listen: Address;
  readonly admin: Address;
  /** Host names in lower case, without a port, IPv6 in brackets. */
  readonly hosts: readonly string[];
  /** Origins beside those of pages from loopback. */
  readonly origins: readonly string[];
  readonly publicUrl?: string;
  readonly trustedProxies: readonly string[];
  /** Hashes of keys (`sha256:` and digits in lower case) by the caller's name. */
  readonly keys: Readonly<Record<string, string>>;
  readonly auth: 'keys' | 'none';
  /** Absolute paths of PEM files. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly metrics: { readonly token?: string };
  /** Absolute; absent where the environment decides. */
  readonly stateDir?: string;
  readonly secret?: string;
  /** Whether clients of 2024-11-05 are served over HTTP+SSE too. */
  readonly legacySse: boolean;
  /** How many processes serve `listen`. */
  readonly workers: number | 'auto';
  readonly names: { readonly separator: string; readonly max: number };
  readonly lists: { readonly deadlineMs: number; readonly pageSize: number };
  readonly cache: { readonly defaultTtlMs: number; readonly bytesMax: number };
  readonly probe: { readonly intervalMs: number; readonly timeoutMs: number };
  /** Absent: 25 s on SIGTERM, 2 s on SIGINT. */
  readonly drainTimeoutMs?: number;
  readonly limits: Limits;
  readonly log: {
    readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
    readonly calls: 'off' | 'errors' | 'all';
  };
  /** The servers to use, in the order of the file. */
  readonly servers: readonly ServerConfig[];
  readonly disabled: readonly DisabledServer[];
  /** What is allowed but probably not meant, one sentence each. */
  readonly warnings: readonly string[];
  /** What must never be shown, longest first, so that a mask that goes through them in turn hides all of it. */
  readonly secrets: readonly string[];
  /** Absolute. */
  readonly file: string;
  /** The folder of the file, where relative paths start. */
  readonly directory: string;
}
