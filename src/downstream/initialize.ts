/** Answers `initialize` from what `server/discover` of the middle says (Lifecycle, 2025-11-25). */
import type { Handler } from '../gateway/layers.ts';
import { Call, type Caller } from '../protocol/call.ts';
import { isLegacyVersion, legacyVersions } from '../protocol/era.ts';
import { code, RpcError } from '../protocol/errors.ts';
import { jsonOf, type ScanOptions } from '../protocol/json.ts';
import { idOf, metaKey, type RequestMessage } from '../protocol/message.ts';
import { ownRequest } from './augment.ts';
import { readReply } from './projection.ts';
import type { Session, Sessions } from './session.ts';

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const record = (value: unknown): Json => (isRecord(value) ? value : {});

/** Tasks as an extension are of 2026-07-28; what these revisions call tasks is another thing. */
function withoutTasks(capabilities: Json): Json {
  const { extensions, ...others } = capabilities;
  const { 'io.modelcontextprotocol/tasks': _, ...kept } = record(extensions);
  return Object.keys(kept).length === 0 ? others : { ...others, extensions: kept };
}

export interface InitializeContext {
  readonly handler: Handler;
  readonly sessions: Sessions;
  readonly caller: Caller;
  readonly scan: ScanOptions;
}

export interface Initialized {
  readonly session: Session;
  /** The whole message. */
  readonly message: Buffer;
}

/** The asked version where it is legacy and known, else the newest legacy one; a session with it. */
export async function initialize(request: RequestMessage, context: InitializeContext): Promise<Initialized> {
  const params = record(jsonOf(request.bytes, request.params));
  const asked = params['protocolVersion'];
  if (typeof asked !== 'string')
    throw new RpcError(code.invalidParams, 'Invalid params: "protocolVersion" must be a string');
  const version = isLegacyVersion(asked) ? asked : legacyVersions[0];
  const session = context.sessions.create(
    version,
    record(params['capabilities']),
    record(params['clientInfo']),
    context.caller.name,
  );
  const own = ownRequest('server/discover', {}, session.meta.text, context.scan);
  const call = new Call(own, session.caller, undefined, () => undefined, version);
  call.alias = 'initialize';
  const reply = await context.handler(call);
  const answered = readReply(reply.parts, context.scan);
  if (answered.kind !== 'complete') throw new Error(`server/discover of the middle gave ${answered.kind}`);
  const discovered = record(jsonOf(answered.bytes, answered.result));
  const result = {
    protocolVersion: version,
    capabilities: withoutTasks(record(discovered['capabilities'])),
    serverInfo: record(discovered['_meta'])[metaKey.serverInfo],
    ...(discovered['instructions'] === undefined ? {} : { instructions: discovered['instructions'] }),
  };
  const id = idOf(request).toString('utf8');
  return { session, message: Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`) };
}
