/** Batches of JSON-RPC, which the revisions up to 2025-03-26 have (2025-03-26, "Batching"). */
import { code, errorMessage, RpcError } from '../protocol/errors.ts';
import { readArray, type ScanOptions, skipSpace } from '../protocol/json.ts';
import type { Limit } from '../protocol/limits.ts';
import { type InboundMessage, scanInbound } from '../protocol/message.ts';
import type { Answering } from './legacy-call.ts';
import { wholeReply } from './pass-on.ts';
import { answerRequest, type MessagesContext, takeNotification, takeResponse } from './session-messages.ts';
import type { Speaker } from './session-settings.ts';

/** One message of a batch. */
export interface BatchItem {
  readonly inbound: InboundMessage;
  readonly body: Buffer;
}

/** Where the replies to a batch go. */
export interface BatchWay {
  /** Whether something went ahead on a stream of events, which is then to carry the replies one by one. */
  isStream(): boolean;
  notify(message: Buffer): void;
  send(message: Buffer): void;
  /** The last message: all replies as one array, or the last of those that went one by one. */
  end(message: Buffer): void;
  /** All of it was taken back. */
  endEmpty(): void;
}

const messagesMax = 100;

const hasBatches = (version: string): boolean => version <= '2025-03-26';

const refused = (message: string, limit?: Limit): RpcError =>
  new RpcError(code.invalidRequest, `Invalid request: ${message}`, {
    status: 400,
    ...(limit === undefined ? {} : { limit }),
  });

/** The messages of a batch that was scanned as one, or what is wrong with the whole of it. */
export function readBatch(body: Buffer, version: string, scan: ScanOptions): readonly BatchItem[] | RpcError {
  if (!hasBatches(version)) return refused(`revision ${version} has no batches`);
  const spans = readArray(body, skipSpace(body, 0), scan);
  if (spans.length === 0) return refused('the batch is empty');
  if (spans.length > messagesMax) return refused(`a batch may have ${messagesMax} messages`, 'batch');
  const items = spans.map(({ start, end }) => {
    const bytes = body.subarray(start, end);
    return { inbound: scanInbound(bytes, scan), body: bytes };
  });
  const begins = items.some(
    ({ inbound }) => inbound.kind === 'request' && inbound.request.method === 'initialize',
  );
  return begins ? refused('initialize must not be part of a batch') : items;
}

const comma = Buffer.from(',');

/** The replies to the requests of one batch: one array where they are all there is. */
class BatchReplies {
  readonly #way: BatchWay;
  readonly #bytesMax: number;
  readonly #ready: Buffer[] = [];
  #missing: number;

  /** `count` replies are awaited; a longer one than `bytesMax` is an error. */
  constructor(count: number, way: BatchWay, bytesMax: number) {
    this.#missing = count;
    this.#way = way;
    this.#bytesMax = bytesMax;
  }

  /** Takes the reply to one request. */
  answering(): Answering {
    return {
      notify: (message) => this.#way.notify(message),
      send: (message) => this.#way.send(message),
      reply: (message) => this.add(message),
      pass: (reply, id) => void wholeReply(reply, id, this.#bytesMax).then((message) => this.add(message)),
      cancelled: () => this.add(undefined),
    };
  }

  /** A reply, or none where the request was taken back. */
  add(message: Buffer | undefined): void {
    if (message !== undefined) this.#ready.push(message);
    this.#missing -= 1;
    if (this.#missing === 0) this.#finish();
    else if (this.#way.isStream()) for (const ready of this.#ready.splice(0)) this.#way.send(ready);
  }

  #finish(): void {
    const last = this.#ready.at(-1);
    if (last === undefined) this.#way.endEmpty();
    else if (this.#way.isStream()) {
      this.#ready.pop();
      for (const ready of this.#ready) this.#way.send(ready);
      this.#way.end(last);
    } else {
      const parts = this.#ready.flatMap((message, index) => (index === 0 ? [message] : [comma, message]));
      this.#way.end(Buffer.concat([Buffer.from('['), ...parts, Buffer.from(']')]));
    }
  }
}

/** Takes all messages of a batch at once; `answerBytesMax` bounds each reply that has to be whole. */
export function takeBatch(
  items: readonly BatchItem[],
  speaker: Speaker,
  way: BatchWay,
  answerBytesMax: number,
  context: MessagesContext,
): void {
  const count = items.filter(({ inbound }) => isAnswered(inbound)).length;
  if (count === 0) way.endEmpty();
  const replies = new BatchReplies(count, way, answerBytesMax);
  for (const { inbound, body } of items) {
    switch (inbound.kind) {
      case 'request':
        answerRequest(inbound.request, speaker, replies.answering(), context);
        break;
      case 'notification':
        void takeNotification(inbound, speaker.session, speaker.alive(), context);
        break;
      case 'response':
        void takeResponse(body, speaker.session, speaker.alive(), context.peers);
        break;
      case 'batch':
        replies.add(errorMessage(undefined, refused('a batch in a batch')));
        break;
      case 'invalid':
        if (inbound.error.limit !== undefined) context.metrics.limitHit(inbound.error.limit);
        replies.add(errorMessage(inbound.id, inbound.error));
        break;
      default:
        throw inbound satisfies never;
    }
  }
}

/** What is no message at all gets its error among the replies. */
const isAnswered = ({ kind }: InboundMessage): boolean => kind !== 'notification' && kind !== 'response';
