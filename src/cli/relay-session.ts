/** The session that a relay keeps at a gateway for its one legacy client (2025-11-25, "Session Management"). */
import { isRecord } from './post.ts';
import { lost } from './relay-answer.ts';
import { type ExchangeRequest, exchange, type Received } from './relay-exchange.ts';

export interface RelaySessionOptions {
  readonly url: string;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Ends all that is open. */
  readonly signal: AbortSignal;
  /** Takes what the gateway says on its own. */
  tell(message: Buffer): void;
}

const rememberedMax = 500;
const resumesMax = 10;
const pauseMs = 1_000;
const pauseMsMax = 30_000;
const goodbyeMs = 1_000;

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    signal.addEventListener('abort', over);
    if (signal.aborted) over();
  });

const initialized = Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}');

/** The revision that an answer to `initialize` names. */
function versionIn(message: Buffer): string | undefined {
  const parsed: unknown = JSON.parse(message.toString('utf8'));
  const result = isRecord(parsed) ? parsed['result'] : undefined;
  const version = isRecord(result) ? result['protocolVersion'] : undefined;
  return typeof version === 'string' ? version : undefined;
}

export class RelaySession {
  readonly #options: RelaySessionOptions;
  /** What the client began with, so that a session that was forgotten can be begun again. */
  #beginning: Buffer | undefined;
  /** What it said since that holds for the whole session. */
  readonly #said = new Map<string, Buffer>();
  #id: string | undefined;
  #version: string | undefined;
  #recovering: Promise<void> | undefined;
  #listening: AbortController | undefined;

  constructor(options: RelaySessionOptions) {
    this.#options = options;
  }

  /** Sends `initialize`; `tell` gets its answer. */
  async begin(body: Buffer, tell: (message: Buffer) => void): Promise<Received> {
    this.#listening?.abort();
    this.#beginning = body;
    let version: string | undefined;
    const received = await this.#exchange({ method: 'POST', body }, {}, (message) => {
      version ??= versionIn(message);
      tell(message);
    });
    this.#id = received.headers.get('mcp-session-id') ?? undefined;
    this.#version = version;
    return received;
  }

  /** Sends any other message, again where the gateway had forgotten the session; a stream that breaks off is taken up where it ended. */
  async post(body: Buffer, isAnswered: () => boolean, tell: (message: Buffer) => void): Promise<Received> {
    const id = this.#id;
    let received = await this.#exchange({ method: 'POST', body }, this.#headers(), tell);
    if (received.status === 404 && id !== undefined) {
      await this.#recover(id);
      received = await this.#exchange({ method: 'POST', body }, this.#headers(), tell);
    }
    for (let resumes = 0; resumes < resumesMax; resumes++) {
      const { lastEventId, retryMs = pauseMs } = received;
      if (isAnswered() || lastEventId === undefined || this.#options.signal.aborted) break;
      await pause(retryMs, this.#options.signal);
      const headers = { ...this.#headers(), 'last-event-id': lastEventId };
      const { status } = received;
      received = await this.#exchange({ method: 'GET' }, headers, tell).catch((error: unknown) => {
        // The request itself was sent long before.
        throw error instanceof TypeError ? lost({ status, broken: error }) : error;
      });
    }
    return received;
  }

  /** Keeps what a new session has to be told again, or forgets it. */
  remember(key: string, body: Buffer | undefined): void {
    if (body === undefined) this.#said.delete(key);
    else if (this.#said.has(key) || this.#said.size < rememberedMax) this.#said.set(key, body);
  }

  /** Keeps the stream open on which the gateway says what belongs to no request. */
  listen(): void {
    if (this.#id === undefined) return;
    this.#listening?.abort();
    const listening = new AbortController();
    this.#listening = listening;
    this.#options.signal.addEventListener('abort', () => listening.abort(), { once: true });
    void this.#keepListening(this.#id, listening.signal);
  }

  /** Tells the gateway that the session is over. */
  async end(): Promise<void> {
    this.#listening?.abort();
    if (this.#id === undefined) return;
    const { url } = this.#options;
    const headers = { ...this.#options.headers, ...this.#headers() };
    const signal = AbortSignal.timeout(goodbyeMs);
    await exchange(url, { method: 'DELETE', headers, signal }, () => undefined).catch(() => undefined);
  }

  async #keepListening(id: string, signal: AbortSignal): Promise<void> {
    let last: string | undefined;
    let waitMs = pauseMs;
    while (!signal.aborted) {
      const headers = { ...this.#headers(), ...(last === undefined ? {} : { 'last-event-id': last }) };
      let received: Received | undefined;
      try {
        received = await this.#exchange({ method: 'GET', signal }, headers, (message) => {
          waitMs = pauseMs;
          if (!signal.aborted) this.#options.tell(message);
        });
      } catch {
        // The gateway is away; it is asked again until it is back.
      }
      if (signal.aborted || received?.status === 405) return;
      if (received?.status === 404) {
        await this.#recover(id).catch(() => undefined);
        return;
      }
      last = received?.lastEventId ?? last;
      await pause(received?.retryMs ?? waitMs, signal);
      waitMs = Math.min(2 * waitMs, pauseMsMax);
    }
  }

  /** Once for all whose requests met it; the client learns nothing of it. */
  #recover(forgotten: string): Promise<void> {
    if (this.#id !== forgotten || this.#beginning === undefined) return Promise.resolve();
    this.#recovering ??= this.#beginAgain(this.#beginning).finally(() => {
      this.#recovering = undefined;
    });
    return this.#recovering;
  }

  async #beginAgain(beginning: Buffer): Promise<void> {
    await this.begin(beginning, () => undefined);
    const said = [initialized, ...this.#said.values()];
    for (const body of said) await this.#exchange({ method: 'POST', body }, this.#headers(), () => undefined);
    this.listen();
  }

  #headers(): Record<string, string> {
    return {
      ...(this.#id === undefined ? {} : { 'mcp-session-id': this.#id }),
      ...(this.#version === undefined ? {} : { 'mcp-protocol-version': this.#version }),
    };
  }

  #exchange(
    request: Pick<ExchangeRequest, 'method' | 'body'> & { readonly signal?: AbortSignal },
    more: Readonly<Record<string, string>>,
    tell: (message: Buffer) => void,
  ): Promise<Received> {
    const { url, headers, signal } = this.#options;
    const accept =
      request.method === 'GET'
        ? { accept: 'text/event-stream' }
        : { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
    return exchange(url, { signal, ...request, headers: { ...headers, ...accept, ...more } }, tell);
  }
}
