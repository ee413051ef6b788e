/** The roots of a client with a session, asked outside any call: on the session's own stream (Roots, 2025-11-25). */
import type { LiveSession } from './live-session.ts';
import type { Session } from './session.ts';

type Json = Readonly<Record<string, unknown>>;

const answerMs = 10_000;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What the client answers to `roots/list`; undefined where it can't be asked now, or does not say. */
export async function clientRoots(
  { facts: { capabilities } }: Session,
  live: LiveSession | undefined,
  id: string,
): Promise<Json | undefined> {
  if (live?.isListened !== true || capabilities['roots'] === undefined) return undefined;
  const question = live.expect(id);
  const timer = setTimeout(() => question.drop(new Error('no answer')), answerMs);
  live.tell(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'roots/list' })));
  const answer = await question.answer.finally(() => clearTimeout(timer));
  return answer.kind === 'result' && isRecord(answer.result) ? answer.result : undefined;
}
