/** Answers `subscriptions/listen`: a call that lasts, acknowledged first, ended with a result (Subscriptions). */
import type { Catalog } from '../catalog/catalog.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Call, Reply } from '../protocol/call.ts';
import { asRpcError, code, own, RpcError } from '../protocol/errors.ts';
import { isObject, jsonOf } from '../protocol/json.ts';
import { idOf, metaKey, paramOf } from '../protocol/message.ts';
import { canWatch } from '../upstream/resource-watch.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { stoppingError } from './admission.ts';
import { resultReply } from './answers.ts';
import type { ChangedKind, Changes } from './changes.ts';
import type { Updates } from './updates.ts';

export interface ListenOptions {
  readonly changes: Changes;
  readonly updates: Updates;
  readonly catalog: Catalog;
  readonly metrics: Metrics;
  readonly streamsMax: number;
}

type Filter = Readonly<Record<string, unknown>>;

/** A resource that some upstream watches for this stream. */
interface Watched {
  readonly uri: string;
  readonly upstream: Upstream;
  readonly localUri: string;
}

const filterKeys: Record<ChangedKind, string> = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
};
const kinds: readonly ChangedKind[] = ['tools', 'prompts', 'resources'];
const urisMax = 200;

const notice = (method: string, subscription: string, more: string): Buffer =>
  Buffer.from(
    `{"jsonrpc":"2.0","method":"${method}","params":{"_meta":{"${metaKey.subscription}":${subscription}}${more}}}`,
  );

function filterOf(call: Call): Filter {
  const member = paramOf(call.request, 'notifications');
  if (!isObject(call.request.bytes, member))
    throw new RpcError(code.invalidParams, 'Invalid params: "notifications" must be an object');
  return jsonOf(call.request.bytes, member) as Filter;
}

function urisOf(filter: Filter): readonly string[] {
  const uris = filter['resourceSubscriptions'];
  if (uris === undefined) return [];
  if (!Array.isArray(uris) || !uris.every((uri) => typeof uri === 'string'))
    throw new RpcError(code.invalidParams, 'Invalid params: "resourceSubscriptions" must be URIs');
  if (uris.length > urisMax)
    throw new RpcError(
      own.overLimit,
      `One listen may watch ${urisMax} resources; this one asks for ${uris.length}`,
      { limit: 'listenUris' },
    );
  return [...new Set(uris as string[])];
}

/** The open listen streams of one gateway. */
export class Listeners {
  readonly #options: ListenOptions;
  readonly #open = new Set<() => void>();
  /** Listens whose resources are not watched yet. */
  #opening = 0;
  #isStopping = false;

  constructor(options: ListenOptions) {
    this.#options = options;
  }

  /** Resolves when the gateway ends the stream, rejects when the client does. */
  async listen(call: Call): Promise<Reply> {
    const { streamsMax } = this.#options;
    const filter = filterOf(call);
    const uris = urisOf(filter);
    if (this.#isStopping) throw stoppingError();
    if (this.#open.size + this.#opening >= streamsMax) {
      throw new RpcError(
        own.overLimit,
        `This gateway has ${streamsMax} open listen streams already (limits.listenStreams)`,
        { limit: 'listenStreams' },
      );
    }
    this.#opening++;
    const watched = await Promise.all(uris.map((uri) => this.#watch(uri))).finally(() => this.#opening--);
    return this.#run(
      call,
      filter,
      watched.filter((one) => one !== undefined),
    );
  }

  /** Ends every stream with its result, and takes no more. */
  stop(): void {
    this.#isStopping = true;
    for (const end of [...this.#open]) end();
  }

  #run(call: Call, filter: Filter, watched: readonly Watched[]): Promise<Reply> {
    const { metrics } = this.#options;
    const subscription = idOf(call.request).toString('utf8');
    const honoured = kinds.filter((kind) => filter[filterKeys[kind]] === true);
    const shown = {
      ...Object.fromEntries(honoured.map((kind) => [filterKeys[kind], true])),
      ...(watched.length === 0 ? {} : { resourceSubscriptions: watched.map(({ uri }) => uri) }),
    };
    call.notify(
      notice(
        'notifications/subscriptions/acknowledged',
        subscription,
        `,"notifications":${JSON.stringify(shown)}`,
      ),
    );
    metrics.subscriptions('downstream', 1);
    const unsubscribe = this.#subscribe(call, subscription, honoured, watched);
    return new Promise((resolve, reject) => {
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
      if (this.#isStopping && this.#open.has(end)) end();
    });
  }

  #subscribe(
    call: Call,
    subscription: string,
    honoured: readonly ChangedKind[],
    watched: readonly Watched[],
  ): () => void {
    const { changes, updates, metrics } = this.#options;
    const ends = watched.map(({ uri, upstream, localUri }) => {
      const end = updates.watch({
        upstream: upstream.name,
        uri: localUri,
        updated: (updated) => {
          metrics.notification('resources/updated', 'sent');
          const shown = JSON.stringify(uri + updated.slice(localUri.length));
          call.notify(notice('notifications/resources/updated', subscription, `,"uri":${shown}`));
        },
      });
      return () => {
        end();
        upstream.resources.remove(localUri);
      };
    });
    ends.push(
      changes.subscribe((kind) => {
        if (!honoured.includes(kind)) return;
        metrics.notification(`${kind}/list_changed`, 'sent');
        call.notify(notice(`notifications/${kind}/list_changed`, subscription, ''));
      }),
    );
    return () => {
      for (const end of ends) end();
    };
  }

  /** Undefined where no upstream can watch it: such a URI is not acknowledged. */
  async #watch(uri: string): Promise<Watched | undefined> {
    const resolved = await this.#options.catalog.resolveUri(uri);
    if (resolved.kind === 'unknown') return undefined;
    const { upstream } = resolved.member;
    if (upstream.live === undefined || !canWatch(upstream.live.profile)) return undefined;
    try {
      await upstream.resources.add(resolved.localKey);
      return { uri, upstream, localUri: resolved.localKey };
    } catch (error) {
      const { limit } = asRpcError(error);
      if (limit !== undefined) this.#options.metrics.limitHit(limit);
      return undefined;
    }
  }
}
