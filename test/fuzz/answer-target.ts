/** What upstreams answer: told apart, spliced for the caller, held or in pieces, against JSON.parse. */
import {
  numericId,
  scanUpstream,
  type UpstreamError,
  type UpstreamMessage,
} from '../../src/protocol/answer.ts';
import { AnswerStream } from '../../src/protocol/answer-stream.ts';
import type { Reply } from '../../src/protocol/call.ts';
import { plainResultId } from '../../src/protocol/plain-result.ts';
import { plainReply } from '../../src/upstream/plain-reply.ts';
import { replyOf } from '../../src/upstream/reply.ts';
import { jsonTree, textOf } from './json-target.ts';
import { depthOf, hasTwice, memberAt, type TreeNode } from './json-tree.ts';
import { answers, gatewayId } from './messages.ts';
import { mutated, subjectsOf } from './mutations.ts';
import type { Tape } from './tape.ts';
import { Disagreement, must, mustEqual, type Target } from './target.ts';

const subjects = subjectsOf(answers);
const options = { strict: false, depthMax: 32 };
const topKeys = ['id', 'method', 'result', 'error', 'params'];
const innerKeys = new Map([
  ['result', ['resultType', 'isError', 'ttlMs', 'cacheScope', 'nextCursor', 'taskId', 'inputRequests']],
  ['error', ['code', 'message', 'data']],
  ['params', ['progressToken', 'level', 'uri', 'requestId', 'taskId', 'inputRequests', '_meta']],
]);
const subscription = 'io.modelcontextprotocol/subscriptionId';

const isAmbiguous = (tree: TreeNode): boolean =>
  hasTwice(tree, topKeys) ||
  tree.members.some(
    ({ key, node }) =>
      hasTwice(node, innerKeys.get(key) ?? []) ||
      (key === 'params' && hasTwice(memberAt(node, '_meta')?.node, [subscription])),
  );

type Json = Readonly<Record<string, unknown>>;
const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The kind of a message that is JSON. */
function wantedKind(tree: TreeNode, value: unknown): UpstreamMessage['kind'] {
  if (!isRecord(value) || depthOf(tree) > options.depthMax || isAmbiguous(tree)) return 'noise';
  const hasId = Object.hasOwn(value, 'id');
  if (typeof value['method'] === 'string') return hasId ? 'request' : 'notification';
  const { error } = value;
  if (isRecord(error)) return Number.isInteger(error['code']) ? 'error' : 'noise';
  return isRecord(value['result']) && hasId ? 'result' : 'noise';
}

function scanned(bytes: Buffer): UpstreamMessage {
  try {
    return scanUpstream(bytes, options);
  } catch (error) {
    throw new Disagreement(`a crash: ${(error as Error).stack}`, bytes);
  }
}

const callers = ['1', '"abc"', '"\\u00e9\\"🎉"', '-0', '12345678901234567890'];

/** A reply, or the error that says why there is none. */
function attempt(make: () => Reply | undefined, bytes: Buffer): Reply | undefined {
  try {
    return make();
  } catch (error) {
    if ((error as Error).name === 'RpcError') return undefined;
    throw new Disagreement(`a crash: ${(error as Error).stack}`, bytes);
  }
}

const whole = (reply: Reply): string => Buffer.concat([...reply.parts]).toString('utf8');

const idText = (text: string, tree: TreeNode): string | undefined => {
  const node = memberAt(tree, 'id')?.node;
  return node === undefined ? undefined : text.slice(node.start, node.end);
};

/** The result as a caller must get it. */
function wantedResult(result: Json, method: string): Json {
  const isRead = method === 'resources/read';
  if (Object.hasOwn(result, 'resultType') && result['resultType'] !== 'complete') return result;
  const ttl = result['ttlMs'];
  const isNegative = isRead && typeof ttl === 'number' && (ttl < 0 || Object.is(ttl, -0));
  return {
    resultType: 'complete',
    ...(isRead ? { ttlMs: 0, cacheScope: 'private' } : {}),
    ...result,
    ...(isNegative ? { ttlMs: 0 } : {}),
  };
}

/** Another id may never reach a caller, since channels with many calls tell answers by it. */
function mustCarry(said: string, callerId: string, what: string, bytes: Buffer): void {
  const tree = jsonTree(said);
  if (tree === undefined || tree.kind !== 'object') return;
  mustEqual(idText(said, tree), callerId, `${what}: the id`, bytes);
}

/** What was told by its form alone is a result with that id, or nothing that anybody may have. */
function checkPlainId(message: UpstreamMessage, bytes: Buffer): void {
  const id = plainResultId(bytes, options);
  const isSame =
    message.kind === 'noise' ||
    (message.kind === 'result' && !message.isOdd && numericId(bytes, message.id) === id);
  must(id === undefined || isSame, 'a result that a scan finds to be something else', bytes);
}

function checkAnswer(tape: Tape): void {
  const bytes = mutated(subjects, tape);
  const method = tape.pick(['tools/call', 'resources/read']);
  const callerId = tape.pick(callers);
  const context = {
    upstream: 'up',
    method,
    request: { bytes: Buffer.from(callerId), id: { start: 0, end: Buffer.byteLength(callerId) } },
    id: gatewayId,
  };
  const message = scanned(bytes);
  checkPlainId(message, bytes);
  const reply = attempt(() => replyOf(message, context), bytes);
  const short = attempt(() => plainReply(bytes, context), bytes);
  const text = textOf(bytes);
  const tree = jsonTree(text);
  if (text === undefined || tree === undefined) {
    must(
      message.kind === 'noise' || (text !== undefined && message.kind === 'result'),
      'no JSON was read',
      bytes,
    );
    must(text !== undefined || short === undefined, 'bytes that are not UTF-8', bytes);
    // What is passed unread stays what it was: no answer becomes JSON on the way that was none.
    if (short !== undefined) must(jsonTree(whole(short)) === undefined, 'no JSON became JSON', bytes);
    return;
  }
  const value: unknown = JSON.parse(text);
  mustEqual(message.kind, wantedKind(tree, value), 'the kind of a message', bytes);
  if (short !== undefined) mustCarry(whole(short), callerId, 'the short way', bytes);
  if (reply !== undefined) mustCarry(whole(reply), callerId, 'a reply', bytes);
  if (message.kind === 'error') mustSay(message.error, value, bytes);
  if (message.kind !== 'result' || !isRecord(value)) return;
  // Some servers write ids as texts or with a fraction.
  const isOurs = new RegExp(`^"?${gatewayId}(?:\\.0{1,4})?"?$`).test(idText(text, tree) ?? '');
  must((reply !== undefined) === isOurs, 'a result of this id, and no other, is a reply', bytes);
  const wanted = {
    ...value,
    id: JSON.parse(callerId),
    result: wantedResult(value['result'] as Json, method),
  };
  if (reply !== undefined) mustEqual(JSON.parse(whole(reply)), wanted, 'a reply', bytes);
  if (short !== undefined) mustEqual(JSON.parse(whole(short)), wanted, 'the short way', bytes);
}

function mustSay(error: UpstreamError, value: unknown, bytes: Buffer): void {
  const said = isRecord(value) && isRecord(value['error']) ? value['error'] : {};
  const { code, message, data } = said;
  mustEqual(
    { ...error },
    { code, message: typeof message === 'string' ? message : '', data },
    'an error',
    bytes,
  );
}

/** What the pieces of a long answer are together, or undefined where it was refused. */
function streamed(chunks: readonly Buffer[], callerId: string, bytes: Buffer): string | undefined {
  const stream = new AnswerStream({
    id: String(gatewayId),
    callerId: Buffer.from(callerId),
    missing: Buffer.from('"resultType":"complete"'),
  });
  const pieces: Buffer[] = [];
  try {
    for (const chunk of chunks) pieces.push(...stream.push(chunk));
    stream.end();
  } catch (error) {
    if ((error as Error).name === 'AnswerFault') return undefined;
    throw new Disagreement(`a crash: ${(error as Error).stack}`, bytes);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function checkStream(tape: Tape): void {
  const bytes = mutated(subjects, tape);
  const text = textOf(bytes);
  // The bytes are checked to be UTF-8 before they come here.
  if (text === undefined) return;
  const callerId = tape.pick(callers);
  const said = streamed([bytes], callerId, bytes);
  mustEqual(streamed(tape.cuts(bytes), callerId, bytes), said, 'an answer in pieces', bytes);
  const tree = jsonTree(text);
  if (tree === undefined) {
    if (said !== undefined) must(jsonTree(said) === undefined, 'no JSON became JSON', bytes);
    return;
  }
  if (said !== undefined) mustCarry(said, callerId, 'a long answer', bytes);
  const message = scanned(bytes);
  const isAnswer = message.kind === 'result' || message.kind === 'error';
  const isOurs = idText(text, tree) === String(gatewayId);
  if (!isAnswer || !isOurs || depthOf(tree) > options.depthMax) return;
  must(said !== undefined, 'a long answer was refused', bytes);
  const value = JSON.parse(text) as Json;
  const { result } = value;
  const type = isRecord(result) && !Object.hasOwn(result, 'resultType') ? { resultType: 'complete' } : {};
  const wanted = {
    ...value,
    id: JSON.parse(callerId),
    ...(isRecord(result) ? { result: { ...result, ...type } } : {}),
  };
  mustEqual(JSON.parse(said), wanted, 'a long answer', bytes);
}

export const answerMessages: Target = { name: 'answers', weight: 8, check: checkAnswer };
export const longAnswers: Target = { name: 'long answers', weight: 8, check: checkStream };
