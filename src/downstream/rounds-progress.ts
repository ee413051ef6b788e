/** Progress of one request of a client through all its rounds, which share its token: values have to increase (Progress, 2025-11-25). */

type Notify = (message: Buffer) => void;

/** Where they go. */
export interface Notified {
  notify(message: Buffer): void;
}

const mark = Buffer.from('notifications/progress');

/** Undefined where it is no progress. */
function progressOf(message: Buffer | undefined): number | undefined {
  if (message?.includes(mark) !== true) return undefined;
  const { method, params } = JSON.parse(message.toString('utf8')) as {
    method?: unknown;
    params?: { progress?: unknown };
  };
  const value = params?.progress;
  return method === 'notifications/progress' && typeof value === 'number' ? value : undefined;
}

export class RoundsProgress {
  readonly #notified: Notified;
  /** What no value of this round may be below. */
  #floor: number | undefined;
  #last: Buffer | undefined;

  constructor(notified: Notified) {
    this.#notified = notified;
  }

  /** What takes the notifications of the next round. */
  round(): Notify {
    this.#floor = progressOf(this.#last) ?? this.#floor;
    return (message) => {
      if (this.#floor !== undefined) {
        const value = progressOf(message);
        if (value !== undefined && value <= this.#floor) return;
      }
      if (message.includes(mark)) this.#last = message;
      this.#notified.notify(message);
    };
  }
}
