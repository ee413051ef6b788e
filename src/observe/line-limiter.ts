/** What a child writes to stderr, as lines of the log that can't flood it. */
import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import type { Log } from './log.ts';

const lineLengthMax = 4_096;
/** More than is shown, so that a secret across the cut is hidden whole. */
const keptLengthMax = 4 * lineLengthMax;
/** How long a count of dropped lines waits for a line that could follow it. */
const noticeMs = 1_000;

export interface LineLimits {
  readonly linesPerSecond: number;
  /** Lines that may come at once after a silence. */
  readonly burst: number;
  /** Hides secrets before a line is cut. */
  mask(text: string): string;
  /** Milliseconds of a clock that never goes back. */
  now(): number;
}

/** Logs what is pushed line by line at `info`, 4 KiB of each at most; drops lines over the rate and says afterwards how many. */
export class LineLimiter {
  readonly #log: Log;
  readonly #limits: LineLimits;
  readonly #decoder = new StringDecoder('utf8');
  #pending = '';
  #tokens: number;
  #filledAt: number;
  #dropped = 0;
  #notice: NodeJS.Timeout | undefined;

  constructor(log: Log, limits: LineLimits) {
    this.#log = log;
    this.#limits = limits;
    this.#tokens = limits.burst;
    this.#filledAt = limits.now();
  }

  /** Takes the next bytes; what comes without a line end waits for it, its first 16 KiB at most. */
  push(chunk: Buffer): void {
    const [head = '', ...others] = this.#decoder.write(chunk).split(/\r?\n/);
    const tail = others.pop();
    this.#keep(head);
    if (tail === undefined) return;
    this.#line(this.#pending);
    for (const line of others) this.#line(line);
    this.#pending = '';
    this.#keep(tail);
  }

  /** Logs what waits, and how many lines were dropped: for when the child has ended. More may follow. */
  close(): void {
    this.#keep(this.#decoder.end());
    this.#line(this.#pending);
    this.#pending = '';
    this.#sayDropped();
  }

  #keep(text: string): void {
    this.#pending += text.slice(0, Math.max(0, keptLengthMax - this.#pending.length));
  }

  #line(raw: string): void {
    const line = stripVTControlCharacters(raw.slice(0, keptLengthMax)).trimEnd();
    if (line === '') return;
    if (!this.#takeToken()) {
      this.#dropped += 1;
      this.#notice ??= setTimeout(() => this.#sayDropped(), noticeMs).unref();
      return;
    }
    this.#sayDropped();
    const shown = this.#limits.mask(line);
    const isLong = shown.length > lineLengthMax;
    this.#log.info({ stream: 'stderr' }, isLong ? `${shown.slice(0, lineLengthMax)}…` : shown);
  }

  #takeToken(): boolean {
    const { linesPerSecond, burst, now } = this.#limits;
    const at = now();
    this.#tokens = Math.min(burst, this.#tokens + ((at - this.#filledAt) / 1_000) * linesPerSecond);
    this.#filledAt = at;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  #sayDropped(): void {
    clearTimeout(this.#notice);
    this.#notice = undefined;
    if (this.#dropped === 0) return;
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#log.warn({ stream: 'stderr', dropped }, `too many lines at once, dropped: ${dropped}`);
  }
}
