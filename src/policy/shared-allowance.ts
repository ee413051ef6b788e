/** The credit that one of several processes has of a limit: it asks for more before it is used up, and gives back what it is asked for. */
import type { Places } from './allowance.ts';

/** What a worker tells of one allowance. */
export interface AllowanceUp {
  readonly key: string;
  /** Tells apart all allowances that one worker ever had. */
  readonly id: number;
  /** The limit as the config of this worker has it. */
  readonly max: number;
  /** Credit that it gives back with this. */
  readonly back: number;
  /** What it uses, or did a moment ago. */
  readonly need: number;
  /** What it would like to have. */
  readonly want: number;
  /** Nothing comes after this. */
  readonly isOver?: true;
}

/** What a worker is told of one allowance. */
export type AllowanceDown =
  | {
      readonly kind: 'grant';
      readonly id: number;
      /** Credit that comes with this; what was called back before may be kept. */
      readonly amount: number;
    }
  | {
      readonly kind: 'recall';
      readonly id: number;
      /** How much credit it may keep. */
      readonly keep: number;
      /** Whether it has to give back what it uses too, as that ends; else only what it does not need. */
      readonly isHard: boolean;
    };

/** What stands between an allowance and those who give credit. */
export interface AllowancePort {
  /** A new id. */
  open(allowance: SharedAllowance): number;
  send(message: AllowanceUp): void;
  /** `flush` is wanted at the end of this turn. */
  later(allowance: SharedAllowance): void;
  /** Nothing is told to it any more. */
  over(id: number): void;
}

/** How much of the credit has to be in use before more is asked for. */
const tightShare = 0.75;
/** After so many looks at which nobody needed it, a credit that can be waited for is given back. */
const idleLooksMax = 120;

export class SharedAllowance implements Places {
  waiting = 0;
  readonly #key: string;
  readonly #port: AllowancePort;
  readonly #more: (() => void) | undefined;
  #id: number | undefined;
  #max: number;
  #used = 0;
  #credit = 0;
  /** Up to here a take is no matter for thought. */
  #easy = 0;
  /** At least the most that was used since the last look, at most an eighth more. */
  #peak = 0;
  #peakBefore = 0;
  /** How much credit may stay here; what is in use beyond it goes as it ends. */
  #keep = Number.POSITIVE_INFINITY;
  #isOwing = false;
  #isClosed = false;
  /** Given back, and not told yet. */
  #back = 0;
  #needTold = 0;
  #wantTold = 0;
  #idleLooks = 0;

  /** Credit comes after this. */
  constructor(key: string, max: number, port: AllowancePort, more: (() => void) | undefined) {
    this.#key = key;
    this.#max = max;
    this.#port = port;
    this.#more = more;
    this.#tell();
  }

  get max(): number {
    return this.#max;
  }

  set max(max: number) {
    if (max === this.#max) return;
    this.#max = max;
    if (this.#id !== undefined) this.#tell();
  }

  get used(): number {
    return this.#used;
  }

  get credit(): number {
    return this.#credit;
  }

  get isKept(): boolean {
    return !this.#isOwing;
  }

  take(amount = 1): boolean {
    const used = this.#used + amount;
    if (used > this.#easy && !this.#stretch(used)) return false;
    this.#used = used;
    return true;
  }

  give(amount = 1): void {
    this.#used -= amount;
    if (this.#isOwing) this.#repay();
  }

  close(): void {
    this.#isClosed = true;
    this.#keep = 0;
    this.#isOwing = true;
    this.#repay();
  }

  /** Takes what those who give credit say. */
  receive(message: AllowanceDown): void {
    if (this.#isClosed) return;
    switch (message.kind) {
      case 'grant':
        this.#credit += message.amount;
        this.#keep = Number.POSITIVE_INFINITY;
        this.#isOwing = false;
        this.#ease();
        if (this.waiting > 0) this.#more?.();
        this.#askIfTight(this.#used + this.waiting);
        return;
      case 'recall':
        this.#recall(message.keep, message.isHard);
        return;
      default:
        message satisfies never;
    }
  }

  /** To be called now and then: what was not used since the last time but one is not needed any more. */
  look(): void {
    this.#peakBefore = this.#peak;
    this.#peak = this.#used;
    this.#ease();
    const need = this.#need;
    this.#idleLooks = need > 0 ? 0 : this.#idleLooks + 1;
    // Whoever can wait for its first credit need not keep any.
    if (this.#more !== undefined && this.#idleLooks >= idleLooksMax && this.#id !== undefined) this.#end();
    else if (need < this.#needTold * tightShare || this.#want < this.#wantTold * tightShare) this.#tell();
  }

  /** Tells what was given back. */
  flush(): void {
    if (this.#isClosed && this.#credit === 0) this.#end();
    else if (this.#back > 0) this.#tell();
  }

  /** What is in use or waits, or was or did a moment ago. */
  get #need(): number {
    return Math.max(this.#peakBefore, this.#peak, this.#used + this.waiting);
  }

  get #want(): number {
    const need = this.#need;
    return Math.max(need, Math.min(this.#max, need + Math.ceil(need / 2)));
  }

  /** Whether there is credit for so much. */
  #stretch(used: number): boolean {
    if (this.#isClosed) return false;
    this.#peak = Math.max(this.#peak, used + Math.floor(used / 8));
    this.#ease();
    this.#askIfTight(used);
    return used <= this.#credit;
  }

  #ease(): void {
    this.#easy = Math.min(this.#credit, this.#peak);
  }

  #askIfTight(used: number): void {
    if (used <= this.#credit * tightShare) return;
    const isNews = this.#want > this.#wantTold || (used > this.#credit && this.#need > this.#needTold);
    if (isNews || this.#id === undefined) this.#tell();
  }

  #recall(keep: number, isHard: boolean): void {
    this.#keep = isHard ? keep : Number.POSITIVE_INFINITY;
    this.#release(isHard ? keep : Math.max(keep, this.#need));
    this.#isOwing = this.#credit > this.#keep;
    if (this.#back > 0 || !isHard) this.#tell();
  }

  #repay(): void {
    this.#release(this.#keep);
    this.#isOwing = this.#credit > this.#keep;
    this.#port.later(this);
  }

  /** Gives back all credit beyond so much that is not in use. */
  #release(keep: number): void {
    const kept = Math.max(keep, this.#used);
    if (this.#credit <= kept) return;
    this.#back += this.#credit - kept;
    this.#credit = kept;
    this.#ease();
  }

  #tell(): void {
    this.#id ??= this.#port.open(this);
    const message = {
      key: this.#key,
      id: this.#id,
      max: this.#max,
      back: this.#back,
      need: this.#need,
      want: this.#want,
    };
    this.#back = 0;
    this.#needTold = message.need;
    this.#wantTold = message.want;
    this.#port.send(message);
  }

  #end(): void {
    const id = this.#id;
    if (id === undefined) return;
    this.#id = undefined;
    this.#port.send({
      key: this.#key,
      id,
      max: this.#max,
      back: this.#back + this.#credit,
      need: 0,
      want: 0,
      isOver: true,
    });
    this.#back = 0;
    this.#credit = 0;
    this.#easy = 0;
    this.#needTold = 0;
    this.#wantTold = 0;
    this.#port.over(id);
  }
}
