/** The innermost handler: answers what the gateway can itself, sends the rest to the upstream whose name it is. */
import type { Catalog, Resolved } from '../catalog/catalog.ts';
import type { BridgeOutcome } from '../observe/labels.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Deadlines } from '../policy/deadline.ts';
import type { Call, Outcome, Reply } from '../protocol/call.ts';
import { asRpcError, code, RpcError } from '../protocol/errors.ts';
import { find, jsonOf, type Member, textOf } from '../protocol/json.ts';
import { paramOf } from '../protocol/message.ts';
import { methodOf } from '../protocol/methods.ts';
import { outgoingParamHeaders, paramMismatch } from '../protocol/param-headers.ts';
import type { Live } from '../upstream/upstream.ts';
import { type DiscoverOptions, discoverReply } from './discover.ts';
import { errorType, type Handler } from './layers.ts';
import type { Listeners } from './listen.ts';
import { type ListingOptions, listReply } from './listing.ts';
import { abortable, whenOver } from './long-reply.ts';
import { waited } from './waited.ts';

export interface DispatchOptions {
  readonly catalog: Catalog;
  readonly listing: ListingOptions;
  readonly discover: DiscoverOptions;
  readonly listeners: Listeners;
  readonly metrics: Metrics;
  readonly deadlines: Deadlines;
  readonly nowMs: () => number;
  /** How long a call waits for an upstream that is starting. */
  readonly readyMs: number;
}

const noHeaders: ReadonlyMap<string, string> = new Map();

type Found = Resolved & { readonly kind: 'found' };

const shown = (value: string): string => (value.length > 200 ? `${value.slice(0, 200)}…` : value);

const wanted = (call: Call, key: string): { member: Member; value: string } => {
  const member = paramOf(call.request, key);
  const value = textOf(call.request.bytes, member);
  if (member === undefined || value === undefined)
    throw new RpcError(code.invalidParams, `Invalid params: "${key}" must be a string`);
  return { member, value };
};

/** Throws and rejections are the same to a caller. */
const attempt = (run: () => Promise<Reply>): Promise<Reply> => {
  try {
    return run();
  } catch (error) {
    return Promise.reject(error);
  }
};

export function dispatch(options: DispatchOptions): Handler {
  return (call) => attempt(() => route(call, options));
}

function route(call: Call, options: DispatchOptions): Promise<Reply> {
  const method = methodOf(call.request.method);
  if (method === undefined)
    throw new RpcError(code.methodNotFound, `Method not found: ${shown(call.request.method)}`, {
      status: 404,
    });
  switch (method.route) {
    case 'discover':
      return discoverReply(call, options.discover);
    case 'list':
      return listReply(call, method.list ?? 'tools', options.listing);
    case 'listen':
      return options.listeners.listen(call);
    case 'tool':
    case 'prompt':
      return named(call, method.route, options);
    case 'resource':
      return resource(call, options);
    case 'completion':
      return complete(call, options);
    default:
      throw method.route satisfies never;
  }
}

/** A name that is known goes on at once; only one that is not may have to wait for servers that are starting. */
function named(call: Call, what: 'tool' | 'prompt', options: DispatchOptions): Promise<Reply> {
  const { catalog } = options;
  const { member, value } = wanted(call, 'name');
  const kind = what === 'tool' ? 'tools' : 'prompts';
  const send = (resolved: Resolved): Promise<Reply> => {
    const found = known(resolved, what, value, catalog);
    call.known =
      what === 'tool' ? { tool: value, output: found.entry?.output ?? 'undeclared' } : { prompt: value };
    return forward(call, found, member, options);
  };
  const at = catalog.find(kind, value);
  return at === undefined ? waited(call, options.nowMs, catalog.resolve(kind, value)).then(send) : send(at);
}

async function resource(call: Call, options: DispatchOptions): Promise<Reply> {
  const { catalog, nowMs } = options;
  const { member, value } = wanted(call, 'uri');
  const found = known(await waited(call, nowMs, catalog.resolveUri(value)), 'resource', value, catalog);
  return forward(call, found, member, options);
}

/** What was found, or the error that says what is unknown; where a server that may have it is down, that too. */
function known(
  resolved: Resolved,
  what: 'tool' | 'prompt' | 'resource',
  name: string,
  catalog: Catalog,
): Found {
  if (resolved.kind === 'found') return resolved;
  const absent = catalog.members
    .filter(({ upstream }) => upstream.live === undefined)
    .map(({ server }) => server);
  const owner = absent.find(({ prefix }) => prefix !== '' && name.startsWith(prefix));
  const hint = owner === undefined ? '' : ` (server \`${owner.name}\` is not up)`;
  const text = what === 'resource' ? 'Resource not found' : `Unknown ${what}`;
  throw new RpcError(code.invalidParams, `${text}: ${shown(name)}${hint}`, {
    ...(what === 'resource' ? { data: { uri: name } } : {}),
  });
}

async function complete(call: Call, options: DispatchOptions): Promise<Reply> {
  const { catalog, nowMs } = options;
  const ref = paramOf(call.request, 'ref');
  const name = find(ref?.members, 'name');
  const uri = find(ref?.members, 'uri');
  const { bytes } = call.request;
  const nameText = textOf(bytes, name);
  if (nameText !== undefined)
    return forward(
      call,
      known(await waited(call, nowMs, catalog.resolve('prompts', nameText)), 'prompt', nameText, catalog),
      name,
      options,
    );
  const uriText = textOf(bytes, uri);
  if (uriText === undefined)
    throw new RpcError(code.invalidParams, 'Invalid params: "ref" must name a prompt or a resource');
  const found = known(
    await waited(call, nowMs, catalog.resolveTemplate(uriText)),
    'resource',
    uriText,
    catalog,
  );
  return forward(call, found, uri, options);
}

/** Checks the mirrored arguments, and gives the headers for the upstream (Streamable HTTP, "Custom Headers"). */
function paramHeaders(call: Call, found: Found, isModernHttp: boolean, metrics: Metrics): string[] {
  const defined = found.entry?.paramHeaders ?? [];
  const sent = call.paramHeaders ?? noHeaders;
  if (defined.length === 0 && (sent.size === 0 || !isModernHttp)) return [];
  const args =
    defined.length === 0 ? undefined : jsonOf(call.request.bytes, paramOf(call.request, 'arguments'));
  const wrong = call.paramHeaders === undefined ? undefined : paramMismatch(defined, sent, args);
  if (wrong !== undefined) {
    metrics.headerMismatch('mcp-param');
    throw new RpcError(code.headerMismatch, `Header mismatch: ${wrong}`, { status: 400 });
  }
  return isModernHttp ? outgoingParamHeaders(defined, sent, args) : [];
}

function forward(
  call: Call,
  found: Found,
  member: Member | undefined,
  options: DispatchOptions,
): Promise<Reply> {
  const { upstream } = found.member;
  const { live } = upstream;
  call.upstream = upstream.name;
  if (live !== undefined) return send(call, found, member, live, options);
  return waited(call, options.nowMs, upstream.ready(options.readyMs)).then((ready) =>
    send(call, found, member, ready, options),
  );
}

function send(
  call: Call,
  found: Found,
  member: Member | undefined,
  { connection, profile }: Live,
  options: DispatchOptions,
): Promise<Reply> {
  const { upstream, server } = found.member;
  const { era } = profile.dialect;
  const { transport } = connection.channel;
  const isModernHttp = era === 'modern' && transport === 'streamable-http';
  const headers = paramHeaders(call, found, isModernHttp, options.metrics);
  const startMs = options.nowMs();
  const deadline = options.deadlines.start(call, {
    upstream: upstream.name,
    timeoutMs: server.timeoutMs,
    maxTimeoutMs: server.maxTimeoutMs,
  });
  const measure = (error: string | undefined, outcome: BridgeOutcome): void => {
    const ms = options.nowMs() - startMs;
    call.upstreamMs += ms;
    options.metrics.clientOperation(
      upstream.name,
      call.request.method,
      call.known?.tool === undefined ? undefined : found.localKey,
      error,
      transport === 'stdio' ? 'pipe' : 'tcp',
      era,
      ms / 1000,
    );
    options.metrics.eraBridge(call.era, era, outcome);
  };
  return attempt(() =>
    connection.send(call, {
      member,
      name: found.localKey,
      paramHeaders: headers,
      asTask: found.entry?.asTask === true,
    }),
  ).then(
    (reply) => {
      measure(errorType(reply.outcome), bridged(reply.outcome));
      return whenOver(abortable(reply, call), () => options.deadlines.end(deadline));
    },
    (error: unknown) => {
      options.deadlines.end(deadline);
      measure(String(asRpcError(error).code), 'error');
      throw error;
    },
  );
}

const bridged = (outcome: Outcome): BridgeOutcome => {
  switch (outcome.kind) {
    case 'ok':
      return 'ok';
    case 'asks':
      return 'input_required';
    case 'error':
      return outcome.error === 'tool_error' ? 'tool_error' : 'error';
    default:
      throw outcome satisfies never;
  }
};
