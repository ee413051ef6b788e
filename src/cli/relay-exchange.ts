/** One HTTP request of a relay, and the messages that come back for it. */

import { SseDecoder } from '../protocol/sse.ts';
import { isMessage } from './relay-answer.ts';

export interface ExchangeRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly signal: AbortSignal;
}

export interface Received {
  readonly status: number;
  readonly headers: Headers;
  /** The body, where the status is none of success. */
  readonly refusal: Buffer | undefined;
  /** Where a stream of events ended or broke, for whoever may go on there. */
  readonly lastEventId: string | undefined;
  readonly retryMs: number | undefined;
  /** Why the answer broke off in the middle. */
  readonly broken: Error | undefined;
}

/** The longest message that is relayed. */
const messageBytesMax = 64 * 1024 * 1024;

const asBuffer = (chunk: Uint8Array): Buffer => Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);

const tooLong = (): Error => new Error(`a message of more than ${messageBytesMax} bytes`);

async function wholeBody(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > messageBytesMax) throw tooLong();
    chunks.push(asBuffer(chunk));
  }
  return Buffer.concat(chunks, bytes);
}

/** Rejects where no answer began; what breaks afterwards is told in the result. `tell` gets each message of a success, and nothing that is none. */
export async function exchange(
  url: string,
  request: ExchangeRequest,
  take: (message: Buffer) => void,
): Promise<Received> {
  const tell = (message: Buffer): void => {
    if (isMessage(message)) take(message);
  };
  const { method, headers, body, signal } = request;
  const response = await fetch(url, { method, headers, signal, ...(body === undefined ? {} : { body }) });
  const content = (response.body ?? []) as AsyncIterable<Uint8Array>;
  const isStream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
  const received = { status: response.status, headers: response.headers };
  const none = { refusal: undefined, lastEventId: undefined, retryMs: undefined, broken: undefined };
  try {
    if (response.ok && isStream) return { ...received, ...none, ...(await readEvents(content, tell)) };
    const whole = await wholeBody(content);
    if (!response.ok) return { ...received, ...none, refusal: whole };
    tell(whole);
    return { ...received, ...none };
  } catch (error) {
    return { ...received, ...none, broken: error as Error };
  }
}

async function readEvents(
  content: AsyncIterable<Uint8Array>,
  tell: (message: Buffer) => void,
): Promise<Pick<Received, 'lastEventId' | 'retryMs' | 'broken'>> {
  let broken: Error | undefined;
  const decoder = new SseDecoder({
    eventBytesMax: messageBytesMax,
    onEvent: ({ type, data }) => {
      if ((type === '' || type === 'message') && data.length > 0) tell(data);
    },
    onTooBig: () => {
      broken = tooLong();
    },
  });
  try {
    for await (const chunk of content) {
      decoder.push(asBuffer(chunk));
      if (broken !== undefined) break;
    }
  } catch (error) {
    broken = error as Error;
  }
  return { lastEventId: decoder.lastEventId, retryMs: decoder.reconnectMs, broken };
}
