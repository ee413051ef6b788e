/** Answers `subscriptions/listen`: a call that lasts, acknowledged first, ended with a result (Subscriptions). */
import type { Catalogs } from '../catalog/catalogs.ts';
import type { Metrics } from '../observe/metrics.ts';
import { type Call, contextOf, type Reply } from '../protocol/call.ts';
import { asRpcError, code, own, RpcError } from '../protocol/errors.ts';
import { isObject, jsonOf } from '../protocol/json.ts';
import type { Allowance, Limit } from '../protocol/limits.ts';
import { idOf, metaKey, paramOf } from '../protocol/message.ts';
import { capabilitiesOf } from '../upstream/input-required.ts';
import { canWatch, canWatchTasks, type KeyWatch } from '../upstream/key-watch.ts';
import { lackingOfAll } from '../upstream/lacking.ts';
import type { TaskIds } from '../upstream/task-ids.ts';
import type { Upstream } from '../upstream/upstream.ts';
import { stoppingError } from './admission.ts';
import { outwardNotice } from './aliases.ts';
import { resultReply } from './answers.ts';
import type { ChangedKind, Changes } from './changes.ts';
import { assertTasks, openTask } from './task.ts';
import type { TaskUpdates } from './task-updates.ts';
import type { Updates } from './updates.ts';

export interface ListenOptions {
  readonly changes: Changes;
  readonly updates: Updates;
  readonly taskUpdates: TaskUpdates;
  readonly taskIds: TaskIds;
  readonly catalogs: Catalogs;
  readonly metrics: Metrics;
  /** How many may be open. */
  readonly streams: Allowance;
}

type Filter = Readonly<Record<string, unknown>>;

/** A resource that some upstream watches for this stream. */
interface Watched {
  readonly uri: string;
  readonly upstream: Upstream;
  readonly localUri: string;
}

/** A task that its upstream tells of on this stream. */
interface WatchedTask {
  /** As the client has it. */
  readonly id: string;
  readonly upstream: Upstream;
  readonly localId: string;
}

interface AllWatched {
  readonly resources: readonly Watched[];
  readonly tasks: readonly WatchedTask[];
}

const filterKeys: Record<ChangedKind, string> = {
  tools: 'toolsListChanged',
  prompts: 'promptsListChanged',
  resources: 'resourcesListChanged',
};
const kinds: readonly ChangedKind[] = ['tools', 'prompts', 'resources'];
const urisMax = 200;
const tasksMax = 200;

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

/** The distinct texts of one member of the filter. */
function textsOf(
  filter: Filter,
  key: string,
  { max, what, limit }: { max: number; what: string; limit: Limit },
): readonly string[] {
  const texts = filter[key];
  if (texts === undefined) return [];
  if (!Array.isArray(texts) || !texts.every((text) => typeof text === 'string'))
    throw new RpcError(code.invalidParams, `Invalid params: "${key}" must be strings`);
  if (texts.length > max)
    throw new RpcError(
      own.overLimit,
      `One listen may watch ${max} ${what}; this one asks for ${texts.length}`,
      { limit },
    );
  return [...new Set(texts as string[])];
}

const urisOf = (filter: Filter): readonly string[] =>
  textsOf(filter, 'resourceSubscriptions', { max: urisMax, what: 'resources', limit: 'listenUris' });

/** Throws where the caller did not declare the extension (Tasks, "Task Status Notifications"). */
function taskIdsOf(filter: Filter, call: Call): readonly string[] {
  if (filter['taskIds'] !== undefined) assertTasks(call);
  return textsOf(filter, 'taskIds', { max: tasksMax, what: 'tasks', limit: 'listenTasks' });
}

/** The open listen streams of one gateway. */
export class Listeners {
  readonly #options: ListenOptions;
  readonly #open = new Set<() => void>();
  #isStopping = false;

  constructor(options: ListenOptions) {
    this.#options = options;
  }

  /** Resolves when the gateway ends the stream, rejects when the client does. */
  async listen(call: Call): Promise<Reply> {
    const { streams } = this.#options;
    const filter = filterOf(call);
    const uris = urisOf(filter);
    const ids = taskIdsOf(filter, call);
    if (this.#isStopping) throw stoppingError();
    if (!streams.take()) {
      throw new RpcError(
        own.overLimit,
        `This gateway has ${streams.max} open listen streams already (limits.listenStreams)`,
        { limit: 'listenStreams' },
      );
    }
    try {
      const [resources, tasks] = await Promise.all([
        Promise.all(uris.map((uri) => this.#watch(uri, call))),
        Promise.all(ids.map((id) => this.#watchTask(id, call))),
      ]);
      return await this.#run(call, filter, {
        resources: resources.filter((one) => one !== undefined),
        tasks: tasks.filter((one) => one !== undefined),
      });
    } finally {
      streams.give();
    }
  }

  /** Ends every stream with its result, and takes no more. */
  stop(): void {
    this.#isStopping = true;
    for (const end of [...this.#open]) end();
  }

  #run(call: Call, filter: Filter, watched: AllWatched): Promise<Reply> {
    const { metrics } = this.#options;
    const subscription = idOf(call.request).toString('utf8');
    const honoured = kinds.filter((kind) => filter[filterKeys[kind]] === true);
    const shown = {
      ...Object.fromEntries(honoured.map((kind) => [filterKeys[kind], true])),
      ...(watched.resources.length === 0
        ? {}
        : { resourceSubscriptions: watched.resources.map(({ uri }) => uri) }),
      ...(watched.tasks.length === 0 ? {} : { taskIds: watched.tasks.map(({ id }) => id) }),
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
    watched: AllWatched,
  ): () => void {
    const { changes, updates, metrics } = this.#options;
    const ends = watched.resources.map(({ uri, upstream, localUri }) => {
      const end = updates.watch({
        upstream: upstream.key,
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
    ends.push(...watched.tasks.map((task) => this.#followTask(task, call, subscription)));
    ends.push(
      changes.subscribe(contextOf(call.caller), (kind) => {
        if (!honoured.includes(kind)) return;
        metrics.notification(`${kind}/list_changed`, 'sent');
        call.notify(notice(`notifications/${kind}/list_changed`, subscription, ''));
      }),
    );
    return () => {
      for (const end of ends) end();
    };
  }

  #followTask(task: WatchedTask, call: Call, subscription: string): () => void {
    const { taskUpdates, metrics, catalogs } = this.#options;
    const { id, upstream, localId } = task;
    const declared = capabilitiesOf(call);
    const end = taskUpdates.watch(upstream.key, localId, (notice) => {
      const isAskable = lackingOfAll(notice.inputRequests, declared) === undefined;
      metrics.notification('tasks', isAskable ? 'sent' : 'dropped');
      if (!isAskable) return;
      const message = notice.messageFor(JSON.stringify(id), subscription);
      call.notify(outwardNotice(message, catalogs.of(call.caller), upstream.name));
    });
    return () => {
      end();
      upstream.tasks.remove(localId);
    };
  }

  /** Undefined where it is no task of this caller's, or its upstream tells nothing of tasks. */
  async #watchTask(id: string, call: Call): Promise<WatchedTask | undefined> {
    const found = openTask(id, call.caller, this.#options);
    const upstream = found?.member.upstream;
    if (found === undefined || upstream?.live === undefined || !canWatchTasks(upstream.live.profile))
      return undefined;
    const isWatched = await this.#added(upstream, upstream.tasks, found.localKey);
    return isWatched ? { id, upstream, localId: found.localKey } : undefined;
  }

  /** Undefined where no upstream can watch it: such a URI is not acknowledged. */
  async #watch(uri: string, { caller }: Call): Promise<Watched | undefined> {
    const resolved = await this.#options.catalogs.of(caller).resolveUri(uri);
    if (resolved.kind === 'unknown') return undefined;
    const { upstream } = resolved.member;
    if (upstream.profile === undefined || !canWatch(upstream.profile)) return undefined;
    const isWatched = await this.#added(upstream, upstream.resources, resolved.localKey);
    return isWatched ? { uri, upstream, localUri: resolved.localKey } : undefined;
  }

  async #added(upstream: Upstream, watch: KeyWatch, key: string): Promise<boolean> {
    try {
      if (upstream.live === undefined) await upstream.ready(0);
      await watch.add(key);
      return true;
    } catch (error) {
      const { limit } = asRpcError(error);
      if (limit !== undefined) this.#options.metrics.limitHit(limit);
      return false;
    }
  }
}
