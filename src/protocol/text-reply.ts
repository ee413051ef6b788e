/** Short replies as text: most leave as text, and a string of Latin-1 costs less than bytes of their own. */
import { okOutcome, type Reply } from './call.ts';

/** A complete result; its parts are made where somebody wants bytes. */
export class TextReply implements Reply {
  readonly text: string;
  readonly outcome = okOutcome;
  readonly status = 200;

  /** The whole message, each character one of its bytes. */
  constructor(text: string) {
    this.text = text;
  }

  get parts(): readonly Buffer[] {
    return [Buffer.from(this.text, 'latin1')];
  }
}

/** The parts of a reply as one. */
export const joined = (reply: Pick<Reply, 'text' | 'parts'>): Buffer =>
  reply.text === undefined ? Buffer.concat(reply.parts) : Buffer.from(reply.text, 'latin1');

/** The same of a reply that nobody reads any more: the memory of its parts is given back. */
export function taken(reply: Pick<Reply, 'text' | 'parts' | 'release'>): Buffer {
  const whole = joined(reply);
  reply.release?.();
  return whole;
}

/** How many bytes the parts of a reply have. */
export function lengthOf(reply: Pick<Reply, 'text' | 'parts'>): number {
  if (reply.text !== undefined) return reply.text.length;
  let bytes = 0;
  for (const part of reply.parts) bytes += part.length;
  return bytes;
}
