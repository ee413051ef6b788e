/** Sends a call to the upstream that it is for: through its bulkhead, under its deadline, measured. */
import type { Found } from '../catalog/catalog.ts';
import type { Catalogs } from '../catalog/catalogs.ts';
import type { BridgeOutcome } from '../observe/labels.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Deadlines } from '../policy/deadline.ts';
import type { Call, Outcome, Reply } from '../protocol/call.ts';
import { asRpcError, code, RpcError } from '../protocol/errors.ts';
import { jsonOf, type Member } from '../protocol/json.ts';
import { paramOf } from '../protocol/message.ts';
import { outgoingParamHeaders, paramMismatch } from '../protocol/param-headers.ts';
import { blames, HeadersRefused, mayPass } from '../upstream/failure.ts';
import type { Live } from '../upstream/state.ts';
import { outward } from './aliases.ts';
import type { Bulkhead, Bulkheads } from './bulkhead.ts';
import { errorType } from './layers.ts';
import { abortable, whenOver } from './long-reply.ts';
import { waited } from './waited.ts';

export interface ForwardOptions {
  readonly catalogs: Catalogs;
  readonly metrics: Metrics;
  readonly deadlines: Deadlines;
  readonly bulkheads: Bulkheads;
  readonly nowMs: () => number;
  /** How long a call waits for an upstream that is starting. */
  readonly readyMs: number;
}

const noHeaders: ReadonlyMap<string, string> = new Map();

/** Throws and rejections are the same to a caller. */
export const attempt = (run: () => Promise<Reply>): Promise<Reply> => {
  try {
    return run();
  } catch (error) {
    return Promise.reject(error);
  }
};

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

/** `member` is where the request says the name. */
export function forward(
  call: Call,
  found: Found,
  member: Member | undefined,
  options: ForwardOptions,
): Promise<Reply> {
  const { upstream, refusal } = found.member;
  call.upstream = upstream.name;
  if (refusal !== undefined) throw refusal;
  const bulkhead = options.bulkheads.of(found.member);
  if (bulkhead.concurrency.enter()) return admitted(call, found, member, bulkhead, options);
  return waited(call, options.nowMs, bulkhead.wait(call)).then(() =>
    admitted(call, found, member, bulkhead, options),
  );
}

/** A call that has its place, which it leaves in the end, however that comes. */
function admitted(
  call: Call,
  found: Found,
  member: Member | undefined,
  bulkhead: Bulkhead,
  options: ForwardOptions,
): Promise<Reply> {
  const { upstream } = found.member;
  const { live } = upstream;
  if (live !== undefined) return placed(call, found, member, live, bulkhead, options);
  return waited(call, options.nowMs, upstream.ready(options.readyMs)).then(
    (ready) => placed(call, found, member, ready, bulkhead, options),
    (error: unknown) => {
      bulkhead.concurrency.leave();
      throw error;
    },
  );
}

function placed(
  call: Call,
  found: Found,
  member: Member | undefined,
  live: Live,
  bulkhead: Bulkhead,
  options: ForwardOptions,
): Promise<Reply> {
  try {
    return send(call, found, member, live, bulkhead, options);
  } catch (error) {
    bulkhead.concurrency.leave();
    throw error;
  }
}

function send(
  call: Call,
  found: Found,
  member: Member | undefined,
  { connection, profile }: Live,
  bulkhead: Bulkhead,
  options: ForwardOptions,
): Promise<Reply> {
  const { upstream, server } = found.member;
  const { era } = profile.dialect;
  const { transport } = connection.channel;
  const isModernHttp = era === 'modern' && transport === 'streamable-http';
  const headers = paramHeaders(call, found, isModernHttp, options.metrics);
  const startMs = options.nowMs();
  const isProbe = bulkhead.admit(connection, startMs);
  const { timeoutMs, maxTimeoutMs } = server;
  const limits = { upstream: upstream.name, timeoutMs, maxTimeoutMs };
  const deadline = options.deadlines.start(call, limits, startMs);
  const measure = (error: string | undefined, outcome: BridgeOutcome): void => {
    const ms = options.nowMs() - startMs;
    call.upstreamMs += ms;
    options.metrics.clientOperation(
      upstream.name,
      call.request.method,
      call.known?.tool === undefined ? undefined : found.localKey,
      error,
      transport === 'stdio' || transport === 'owned' ? 'pipe' : 'tcp',
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
      bulkhead.judge(connection, 'works', isProbe, undefined);
      const watched = whenOver(abortable(reply, call), () => {
        options.deadlines.end(deadline);
        bulkhead.concurrency.leave();
      });
      const catalog = options.catalogs.of(call.caller);
      return catalog.owners.mayAlias(found.member)
        ? outward(watched, call.request.method, catalog, server.name)
        : watched;
    },
    (error: unknown) => {
      options.deadlines.end(deadline);
      bulkhead.concurrency.leave();
      bulkhead.judge(connection, blames(error) ? 'fails' : 'neither', isProbe, error as Error);
      measure(String(asRpcError(error).code), 'error');
      if (!call.isRepeated && call.signal.cause === undefined) {
        if (error instanceof HeadersRefused && isModernHttp)
          return withNewHeaders(call, found, member, options);
        if (mayPass(error) && isRepeatable(call, found)) {
          call.isRepeated = true;
          return forward(call, found, member, options);
        }
      }
      throw error;
    },
  );
}

/** Sent once more after a fetch of the list that the headers came from (Streamable HTTP, "Custom Headers"). */
async function withNewHeaders(
  call: Call,
  found: Found,
  member: Member | undefined,
  options: ForwardOptions,
): Promise<Reply> {
  call.isRepeated = true;
  const { upstream } = found.member;
  const catalog = options.catalogs.of(call.caller);
  catalog.evict(upstream, ['tools']);
  await waited(call, options.nowMs, catalog.list('tools'));
  const now = found.entry === undefined ? undefined : catalog.find('tools', found.entry.publicKey);
  return forward(call, now?.kind === 'found' ? now : found, member, options);
}

const reads: ReadonlySet<string> = new Set(['resources/read', 'prompts/get', 'completion/complete']);

/** Whether the config allows to send it again, and that does no harm; never a later round of a call, whose state is gone. */
const isRepeatable = (call: Call, { member, entry }: Found): boolean =>
  member.server.retry === 'idempotent' &&
  (reads.has(call.request.method) ||
    (call.request.method === 'tools/call' && entry?.isRepeatable === true)) &&
  paramOf(call.request, 'requestState') === undefined;

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
