/** Replies that ask the caller (Multi Round-Trip Requests). */
import type { UpstreamError } from '../protocol/answer.ts';
import { asksOutcome, type Call, type Reply } from '../protocol/call.ts';
import { code, errorMessage, RpcError } from '../protocol/errors.ts';
import { find, jsonOf } from '../protocol/json.ts';
import { idOf, metaKey } from '../protocol/message.ts';

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What the caller of this request declared that it can do. */
export function capabilitiesOf({ request }: Call): Json {
  const declared = jsonOf(request.bytes, find(request.meta, metaKey.capabilities));
  return isRecord(declared) ? declared : {};
}

/** The reply that asks the caller (Multi Round-Trip Requests, "InputRequiredResult"). */
export function inputRequired(
  call: Call,
  requests: Json | undefined,
  state: string | undefined,
  more: Json = {},
): Reply {
  const result = {
    ...more,
    resultType: 'input_required',
    ...(requests === undefined ? {} : { inputRequests: requests }),
    ...(state === undefined ? {} : { requestState: state }),
  };
  const id = idOf(call.request).toString('utf8');
  return {
    parts: [Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`)],
    outcome: asksOutcome,
    status: 200,
  };
}

/** A caller that must be asked and did not say that it can be. */
export const missingCapability = (needed: Json): RpcError =>
  new RpcError(code.missingCapability, 'This call needs a capability that the client did not declare', {
    data: { requiredCapabilities: needed },
    status: 400,
  });

/** How a server hears that the caller can't be asked; one that fails for that says so again. */
export const undeclaredWords = 'The client did not declare the capability that this question needs';

/**
 * The reply of a call in which something was asked that its caller did not declare: a failure that repeats `undeclaredWords` becomes the error
 * for that (basic/index, "_meta"), and anything else passes, since the server did without.
 */
export function replyWithout(needed: Json, reply: Reply, call: Call): Reply {
  const isForThat = reply.outcome.kind === 'error' && Buffer.concat(reply.parts).includes(undeclaredWords);
  if (!isForThat) return reply;
  const error = missingCapability(needed);
  const outcome = { kind: 'error', error: String(error.code) } as const;
  return { parts: [errorMessage(idOf(call.request), error)], outcome, status: error.status };
}

/** The code by which a server of 2025-11-25 says that the user must visit a URL first. */
export const urlRequired = -32042;

/** Asks for each of the URLs that the server names; the retry is a fresh call, so there is no state. Throws an RpcError where the caller can't show URLs. */
export function urlElicitation(call: Call, { data, message }: UpstreamError): Reply {
  const elicitation = capabilitiesOf(call)['elicitation'];
  if (!isRecord(elicitation) || elicitation['url'] === undefined)
    throw missingCapability({ elicitation: { url: {} } });
  const asked = isRecord(data) && Array.isArray(data['elicitations']) ? data['elicitations'] : [];
  const requests = asked.filter(isRecord).map((one, i) => {
    const { elicitationId: _, ...params } = one;
    return [`url${i + 1}`, { method: 'elicitation/create', params: { message, ...params, mode: 'url' } }];
  });
  return inputRequired(call, Object.fromEntries(requests), undefined);
}
