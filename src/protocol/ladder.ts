/** The ladder of checks that a modern request climbs before it becomes a call: data, in order, the first that fails answers. */
import { bodyVersion, modernVersion } from './era.ts';
import { code, RpcError } from './errors.ts';
import { decodeHeader } from './headers.ts';
import { find, isObject, isText, textOf } from './json.ts';
import { metaKey, paramOf, type RequestMessage } from './message.ts';
import { methodOf } from './methods.ts';

export interface ModernInbound {
  readonly request: RequestMessage;
  /** Undefined where the transport has no headers. */
  readonly header: ((name: string) => string | undefined) | undefined;
  /** What `supported` of -32022 lists. */
  readonly supported: readonly string[];
}

/** `header` names the mismatched header, for the counter. */
export interface Refusal {
  readonly error: RpcError;
  readonly header?: string;
}

interface Checked extends ModernInbound {
  /** What the body says. */
  readonly version: string | undefined;
}

type Check = (inbound: Checked) => Refusal | undefined;

const refuse = (errorCode: number, message: string, data?: unknown): Refusal => ({
  error: new RpcError(errorCode, message, { status: 400, ...(data === undefined ? {} : { data }) }),
});

const mismatch = (header: string, message: string): Refusal => ({
  ...refuse(code.headerMismatch, `Header mismatch: ${message}`),
  header,
});

const shown = (value: string): string => `'${value.length > 100 ? `${value.slice(0, 100)}…` : value}'`;

const missingMeta = (key: string): Refusal =>
  refuse(code.invalidParams, `Invalid params: _meta['${key}'] is required and must be well formed`);

const hasVersion: Check = ({ version }) => (version === undefined ? missingMeta(metaKey.version) : undefined);

const versionMatches: Check = ({ header, version: body }) => {
  if (header === undefined) return undefined;
  const value = header('mcp-protocol-version');
  if (value === body) return undefined;
  return mismatch(
    'mcp-protocol-version',
    value === undefined
      ? 'MCP-Protocol-Version is missing'
      : `MCP-Protocol-Version is ${shown(value)} but the body says ${shown(body ?? '')}`,
  );
};

const versionSupported: Check = ({ version: requested, supported }) => {
  if (requested === modernVersion) return undefined;
  return refuse(code.unsupportedVersion, `Unsupported protocol version ${shown(requested ?? '')}`, {
    supported,
    requested,
  });
};

const hasCapabilities: Check = ({ request }) =>
  isObject(request.bytes, find(request.meta, metaKey.capabilities))
    ? undefined
    : missingMeta(metaKey.capabilities);

const methodMatches: Check = ({ request, header }) => {
  if (header === undefined) return undefined;
  const value = header('mcp-method');
  if (value === request.method) return undefined;
  return mismatch(
    'mcp-method',
    value === undefined
      ? 'Mcp-Method is missing'
      : `Mcp-Method is ${shown(value)} but the body says ${shown(request.method)}`,
  );
};

/** Whether a header's value stands for itself, and would stand in a body as it is. */
function isPlainly(value: string): boolean {
  for (let at = 0; at < value.length; at++) {
    const char = value.charCodeAt(at);
    if (char <= 0x20 || char >= 0x7f || char === 0x22 || char === 0x5c || char === 0x3d) return false;
  }
  return true;
}

const nameMatches: Check = ({ request, header }) => {
  const param = methodOf(request.method)?.nameParam;
  if (param === undefined) return undefined;
  const member = paramOf(request, param);
  const raw = header?.('mcp-name');
  if (raw !== undefined && isPlainly(raw) && isText(request.bytes, member, raw)) return undefined;
  const body = textOf(request.bytes, member);
  if (body === undefined) return refuse(code.invalidParams, `Invalid params: "${param}" must be a string`);
  if (header === undefined) return undefined;
  if (raw === undefined) return mismatch('mcp-name', 'Mcp-Name is missing');
  const value = decodeHeader(raw);
  if (value === body) return undefined;
  return mismatch(
    'mcp-name',
    value === undefined
      ? 'Mcp-Name holds characters or Base64 that it may not'
      : `Mcp-Name is ${shown(value)} but the body says ${shown(body)}`,
  );
};

const levels = new Set(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']);

const levelKnown: Check = ({ request }) => {
  const member = find(request.meta, metaKey.logLevel);
  if (member === undefined || levels.has(textOf(request.bytes, member) ?? '')) return undefined;
  return refuse(code.invalidParams, `Invalid params: _meta['${metaKey.logLevel}'] is no log level`);
};

/** In the order of the specification's "Server Validation": the body's version first, since it says what the rest must be. */
const checks: readonly Check[] = [
  hasVersion,
  versionMatches,
  versionSupported,
  hasCapabilities,
  methodMatches,
  nameMatches,
  levelKnown,
];

/** The first check that fails, or undefined where the request may pass. */
export function climb(inbound: ModernInbound): Refusal | undefined {
  const { request, header, supported } = inbound;
  const checked = { request, header, supported, version: bodyVersion(request.bytes, request.meta) };
  for (const check of checks) {
    const refusal = check(checked);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}
