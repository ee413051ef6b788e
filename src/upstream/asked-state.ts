/** What a modern upstream asks: checked against what the caller declared, its state sealed for this caller and this request. */
import type { Seal } from '../auth/seal.ts';
import type { UpstreamMessage } from '../protocol/answer.ts';
import { type Call, contextOf, type Reply } from '../protocol/call.ts';
import { code, RpcError } from '../protocol/errors.ts';
import { jsonOf, textOf } from '../protocol/json.ts';
import { paramOf } from '../protocol/message.ts';
import type { Edit } from '../protocol/splice.ts';
import { digestOf } from './call-digest.ts';
import { capabilitiesOf, inputRequired, missingCapability } from './input-required.ts';
import { lackingOfAll } from './lacking.ts';

type Json = Readonly<Record<string, unknown>>;

export interface StateOptions {
  readonly upstream: string;
  readonly seal: Seal;
  readonly now: () => number;
}

interface State {
  readonly upstream: string;
  readonly caller: string;
  readonly digest: string;
  readonly expires: number;
  /** The upstream's own. */
  readonly state: unknown;
}

const stateMs = 3_600_000;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isState = (value: unknown): value is State => isRecord(value) && 'state' in value && 'digest' in value;

/** The reply that puts an upstream's questions to the caller; throws an RpcError where it did not declare what they need. */
export function askedReply(
  message: UpstreamMessage & { readonly kind: 'result' },
  call: Call,
  options: StateOptions,
): Reply {
  const result = jsonOf(message.bytes, message.result) as Json;
  const requests = isRecord(result['inputRequests']) ? result['inputRequests'] : {};
  const needed = lackingOfAll(requests, capabilitiesOf(call));
  if (needed !== undefined) throw missingCapability(needed);
  const { requestState, inputRequests: _, resultType: __, ...rest } = result;
  const { seal, upstream, now } = options;
  const state =
    requestState === undefined
      ? undefined
      : seal.seal({
          upstream,
          caller: contextOf(call.caller),
          digest: digestOf(call),
          expires: now() + stateMs,
          state: requestState,
        } satisfies State);
  return inputRequired(call, result['inputRequests'] === undefined ? undefined : requests, state, rest);
}

const refused = (): RpcError =>
  new RpcError(
    code.invalidParams,
    'Invalid params: "requestState" is not one that this gateway gave you for this request; send it again without',
  );

/** The upstream's own state in place of the sealed one; undefined where the request has none. Throws an RpcError where it is not this caller's. */
export function stateEdit(call: Call, { seal, upstream, now }: StateOptions): Edit | undefined {
  const { request } = call;
  const member = paramOf(request, 'requestState');
  if (member === undefined) return undefined;
  const text = textOf(request.bytes, member);
  const opened = text === undefined ? undefined : seal.open(text);
  if (!isState(opened) || opened.upstream !== upstream || opened.caller !== contextOf(call.caller))
    throw refused();
  if (opened.digest !== digestOf(call) || now() >= opened.expires) throw refused();
  return { start: member.start, end: member.end, bytes: Buffer.from(JSON.stringify(opened.state)) };
}
