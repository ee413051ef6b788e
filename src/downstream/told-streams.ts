/** Streams that have told all, for clients that did not hear the end: a connection may be broken long before that is known here. */
import { LRUCache } from 'lru-cache';
import type { EventStream } from './event-stream.ts';
import type { Session } from './session.ts';

const toldMax = 1_000;
const toldBytesMax = 16 * 1024 * 1024;
/** What one costs beside its events, roughly. */
const overheadBytes = 1_024;

const keyOf = ({ id }: Session, stream: string): string => `${stream}\n${id}`;

export class ToldStreams {
  readonly #keptMs: number;
  /** Made with the first of them, since it takes its room at once. */
  #streams: LRUCache<string, EventStream> | undefined;

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  /** Keeps one for a while, as there is room. */
  keep(session: Session, stream: EventStream): void {
    this.#streams ??= new LRUCache({
      max: toldMax,
      maxSize: toldBytesMax,
      ttl: this.#keptMs,
      sizeCalculation: ({ keptBytes }) => keptBytes + overheadBytes,
    });
    this.#streams.set(keyOf(session, stream.id), stream);
  }

  /** The stream of this session by its id. */
  find(session: Session, stream: string): EventStream | undefined {
    return this.#streams?.get(keyOf(session, stream));
  }
}
