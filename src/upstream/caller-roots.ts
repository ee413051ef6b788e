/** What a server that one caller has of its own is told of roots: the caller's, as far as they are known. */
import type { Call } from '../protocol/call.ts';
import { capabilitiesOf } from './input-required.ts';

type Json = Readonly<Record<string, unknown>>;

/** Asks a client outside any call; undefined where that can't be. */
export type AskRoots = () => Promise<Json | undefined>;

/** Calls whose caller can be asked something (Multi Round-Trip Requests, "Supported Requests"). */
const askable: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);
/** How long a call waits until a server that was told of other roots has asked for them. */
const askedAgainMs = 1_000;

export class CallerRoots {
  readonly #configured: Json;
  /** What the caller said last. */
  #known: Json | undefined;
  /** What the server was told last. */
  #told: Json | undefined;
  /** The server may have been told others than its caller has. */
  #owed = false;
  #ask: AskRoots | undefined;
  #askedAgain: (() => void) | undefined;

  /** `configured` are those of the config, for callers that have none. */
  constructor(configured: readonly string[]) {
    this.#configured = { roots: configured.map((uri) => ({ uri })) };
  }

  /** Another connection, whose server was told nothing yet. */
  begin(): void {
    this.#told = undefined;
    this.#owed = this.#known !== undefined && this.#owed;
  }

  /** Whether the server waits for what the caller has just said. */
  get isAwaited(): boolean {
    return this.#askedAgain !== undefined;
  }

  /** For a server that asks outside any call of a caller that has roots. */
  async outside(): Promise<Json> {
    if (this.#ask !== undefined) {
      const ask = this.#ask;
      this.#ask = undefined;
      const answer = await ask().catch(() => undefined);
      this.#known = answer ?? this.#known;
      this.#owed = answer === undefined;
    } else if (this.#known === undefined) this.#owed = true;
    this.#told = this.#known ?? this.#configured;
    const done = this.#askedAgain;
    // The answer is on its way before the call that waits for it.
    if (done !== undefined) setImmediate(done);
    return this.#told;
  }

  /** Whether the caller of this call has to be asked before it is sent. */
  owes(call: Call): boolean {
    return this.#owed && askable.has(call.request.method) && capabilitiesOf(call)['roots'] !== undefined;
  }

  /** The caller's client said that its roots changed; `ask` asks it, if the server wants to know. */
  changed(ask: AskRoots): void {
    this.#ask = ask;
    // A server that never asked does not want to know.
    this.#owed = this.#told !== undefined;
  }

  /** The caller said what it has, and the server hears it as the answer to its own question. */
  answered(roots: Json): void {
    this.#known = roots;
    this.#told = roots;
    this.#owed = false;
    this.#ask = undefined;
  }

  /** The caller said what it has; a server that was told others is told so by `notify`, and waited for until it has asked again. */
  async said(roots: Json, notify: () => Promise<void>): Promise<void> {
    const isNews = this.#told !== undefined && JSON.stringify(this.#told) !== JSON.stringify(roots);
    this.#known = roots;
    this.#owed = false;
    this.#ask = undefined;
    if (!isNews) return;
    const asked = new Promise<void>((resolve) => {
      this.#askedAgain = resolve;
      setTimeout(resolve, askedAgainMs).unref();
    });
    await notify();
    await asked;
    this.#askedAgain = undefined;
  }
}
