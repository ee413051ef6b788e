/** Answers `subscriptions/listen`: a call that lasts, acknowledged first, ended with a result (Subscriptions). */
import type { Metrics } from '../observe/metrics.ts';
import type { Call, Reply } from '../protocol/call.ts';
import { code, own, RpcError } from '../protocol/errors.ts';
import { isObject, jsonOf } from '../protocol/json.ts';
import { idOf, metaKey, paramOf } from '../protocol/message.ts';
import { resultReply } from './answers.ts';
import type { ChangedKind, Changes } from './changes.ts';

export interface ListenOptions {
  readonly changes: Changes;
  readonly metrics: Metrics;
  readonly streamsMax: number;
}

const filterKeys: Record<ChangedKind, string> = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
};
const kinds: readonly ChangedKind[] = ['tools', 'prompts', 'resources'];

const notice = (method: string, subscription: string, more: string): Buffer =>
  Buffer.from(
    `{"jsonrpc":"2.0","method":"${method}","params":{"_meta":{"${metaKey.subscription}":${subscription}}${more}}}`,
  );

/** The open listen streams of one gateway. */
export class Listeners {
  readonly #options: ListenOptions;
  readonly #open = new Set<() => void>();

  constructor(options: ListenOptions) {
    this.#options = options;
  }

  /** Resolves when the gateway ends the stream, rejects when the client does. */
  listen(call: Call): Promise<Reply> {
    const { changes, metrics, streamsMax } = this.#options;
    const filter = this.#filterOf(call);
    if (this.#open.size >= streamsMax) {
      metrics.limitHit('listenStreams');
      throw new RpcError(
        own.overLimit,
        `This gateway has ${streamsMax} open listen streams already (limits.listenStreams)`,
      );
    }
    const subscription = idOf(call.request).toString('utf8');
    const honoured = kinds.filter((kind) => filter[filterKeys[kind]] === true);
    const shown = JSON.stringify(Object.fromEntries(honoured.map((kind) => [filterKeys[kind], true])));
    call.notify(
      notice('notifications/subscriptions/acknowledged', subscription, `,"notifications":${shown}`),
    );
    metrics.subscriptions('downstream', 1);
    return new Promise((resolve, reject) => {
      const unsubscribe = changes.subscribe((kind) => {
        if (!honoured.includes(kind)) return;
        metrics.notification(`${kind}/list_changed`, 'sent');
        call.notify(notice(`notifications/${kind}/list_changed`, subscription, ''));
      });
      const over = (): void => {
        unsubscribe();
        this.#open.delete(end);
        call.signal.unlisten();
        metrics.subscriptions('downstream', -1);
      };
      const end = (): void => {
        over();
        const result = `{"resultType":"complete","_meta":{"${metaKey.subscription}":${subscription}}}`;
        resolve(resultReply(call, [Buffer.from(result)]));
      };
      this.#open.add(end);
      call.signal.listen((cause) => {
        over();
        reject(cause);
      });
    });
  }

  /** Ends every stream with its result. */
  stop(): void {
    for (const end of [...this.#open]) end();
  }

  #filterOf(call: Call): Readonly<Record<string, unknown>> {
    const member = paramOf(call.request, 'notifications');
    if (!isObject(call.request.bytes, member))
      throw new RpcError(code.invalidParams, 'Invalid params: "notifications" must be an object');
    return jsonOf(call.request.bytes, member) as Readonly<Record<string, unknown>>;
  }
}
