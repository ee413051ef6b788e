/** What differs between the eras towards an upstream, as one small table of functions each. */
import type { Call } from '../protocol/call.ts';
import { type Era, modernVersion } from '../protocol/era.ts';
import { encodeHeader } from '../protocol/headers.ts';
import type { ScanOptions } from '../protocol/json.ts';
import { metaKey, type NotificationMessage } from '../protocol/message.ts';
import { methodOf } from '../protocol/methods.ts';
import type { Transport } from './channel.ts';
import { legacyBody, modernBody, noticeBody, type Target } from './outgoing.ts';
import { tasksExtension } from './task-ids.ts';

/** MCP Apps, as a client declares it. */
export const uiExtension = {
  'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] },
} as const;

/** How one upstream is spoken to. */
export interface Dialect {
  readonly era: Era;
  readonly version: string;
  body(call: Call, id: number, target: Target): Buffer;
  /** HTTP headers of a call, names and values in turn. */
  headers(method: string, target: Target): readonly string[];
  /** A request of the gateway's own. */
  own(id: number, method: string, params: Readonly<Record<string, unknown>>): Buffer;
  /** What a client tells, under the upstream's own name. */
  notice(message: NotificationMessage, target: Target): Buffer;
  /** What tells the upstream that a request is cancelled, or undefined where closing its stream does. */
  cancel(id: number, transport: Transport): Buffer | undefined;
}

export interface Identity {
  readonly name: string;
  readonly version: string;
}

const cancelled = (id: number): Buffer =>
  Buffer.from(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`);

const requestBytes = (id: number, method: string, params: unknown): Buffer =>
  Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params }));

/** For lists and streams that all callers share: whatever any of them may declare, since some servers hide what needs more. */
const ownCapabilities = {
  roots: {},
  sampling: { context: {}, tools: {} },
  elicitation: { form: {}, url: {} },
  extensions: { [tasksExtension]: {}, ...uiExtension },
};

/** 2026-07-28: stateless, `_meta` on each request, mirrored headers. */
export const modernDialect = (identity: Identity): Dialect => ({
  era: 'modern',
  version: modernVersion,
  body: (call, id, target) => modernBody(call.request, id, target),
  headers: rememberedHeaders(),
  own: (id, method, params) =>
    requestBytes(id, method, {
      ...params,
      _meta: {
        [metaKey.version]: modernVersion,
        [metaKey.clientInfo]: identity,
        [metaKey.capabilities]: ownCapabilities,
      },
    }),
  notice: (message, target) => noticeBody(message, target, false),
  cancel: (id, transport) => (transport === 'stdio' ? cancelled(id) : undefined),
});

/** Whether what the request is about stands in a header: so it does for all that nobody knows, since extensions say it there. */
const isNamed = (method: string): boolean => {
  const known = methodOf(method);
  return known === undefined || known.nameParam !== undefined;
};

function mirrored(method: string, name: string | undefined): string[] {
  const headers = ['MCP-Protocol-Version', modernVersion, 'Mcp-Method', method];
  if (name !== undefined && isNamed(method)) headers.push('Mcp-Name', encodeHeader(name));
  return headers;
}

/** The headers of so many names are remembered. */
const namesMax = 1_000;

/** Those of a name are the same list each time, frozen as it comes again, as long as there are not too many names and no mirrored arguments. */
function rememberedHeaders(): Dialect['headers'] {
  const known = new Map<string, Map<string, readonly string[]>>();
  return (method, { name, paramHeaders }) => {
    if (name === undefined || paramHeaders.length > 0) return [...mirrored(method, name), ...paramHeaders];
    const ofMethod = known.get(method) ?? new Map<string, readonly string[]>();
    const found = ofMethod.get(name);
    if (found !== undefined) return found;
    if (ofMethod.size >= namesMax) ofMethod.clear();
    const headers = Object.freeze(mirrored(method, name));
    ofMethod.set(name, headers);
    if (methodOf(method) !== undefined) known.set(method, ofMethod);
    return headers;
  };
}

const none: readonly string[] = [];

/** For a server that another process speaks to in its own era: that process takes the one dialect. */
export const ownedDialect = (identity: Identity, era: Era, version: string): Dialect => ({
  ...modernDialect(identity),
  era,
  version,
  headers: () => none,
  cancel: () => undefined,
});

const constantly = (headers: readonly string[]): Dialect['headers'] => {
  const frozen = Object.freeze(headers);
  return () => frozen;
};

/** A revision with sessions, after its handshake. */
export const legacyDialect = (version: string, options: ScanOptions): Dialect => ({
  era: 'legacy',
  version,
  body: (call, id, target) => legacyBody(call.request, id, target, options),
  headers: constantly(version >= '2025-06-18' ? ['MCP-Protocol-Version', version] : []),
  own: (id, method, params) => requestBytes(id, method, params),
  notice: (message, target) => noticeBody(message, target, true),
  cancel: (id) => cancelled(id),
});
