/** Answers `server/discover`: what all upstreams can do together, under the gateway's own name. */
import type { Catalogs } from '../catalog/catalogs.ts';
import type { Call, Reply } from '../protocol/call.ts';
import { modernVersion } from '../protocol/era.ts';
import { metaKey } from '../protocol/message.ts';
import type { Profile } from '../upstream/connection.ts';
import type { Identity } from '../upstream/dialect.ts';
import { tasksExtension } from '../upstream/task-ids.ts';
import { resultReply } from './answers.ts';
import { waited } from './waited.ts';

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Handed out only where the gateway can do its part of it. */
const passed = ['completions', 'logging'] as const;

/** Lists are always declared, since clients read capabilities once and upstreams come later. */
function capabilities(of: readonly Json[]): Json {
  const merged: Record<string, unknown> = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true },
  };
  if (of.some((one) => isRecord(one['resources']) && one['resources']['subscribe'] === true))
    merged['resources'] = { subscribe: true, listChanged: true };
  for (const key of passed) if (of.some((one) => isRecord(one[key]))) merged[key] = {};
  const extensions = of.map((one) => one['extensions']).filter(isRecord);
  const all = Object.assign({}, ...[...extensions].reverse()) as Json;
  if (Object.keys(all).length > 0) merged['extensions'] = all;
  return merged;
}

/** What an upstream declares, as far as the middle can carry it: tasks as an extension are of its own revision only. */
function declaredBy({ capabilities: declared, dialect }: Profile): Json {
  const { extensions } = declared;
  if (dialect.era === 'modern' || !isRecord(extensions)) return declared;
  const { [tasksExtension]: _, ...others } = extensions;
  return { ...declared, extensions: others };
}

export interface DiscoverOptions {
  readonly catalogs: Catalogs;
  readonly identity: Identity;
  readonly supported: readonly string[];
  readonly defaultTtlMs: number;
  readonly waitMs: number;
  readonly nowMs: () => number;
}

/** Waits for upstreams that are starting, no longer than lists do. */
export async function discoverReply(call: Call, options: DiscoverOptions): Promise<Reply> {
  const { identity, waitMs, nowMs } = options;
  const catalog = options.catalogs.of(call.caller);
  const starting = catalog.members.flatMap(({ upstream }) =>
    upstream.state.kind === 'starting' ? [upstream.ready(waitMs).catch(() => undefined)] : [],
  );
  await waited(call, nowMs, Promise.all(starting));
  const live = catalog.members.flatMap(({ server, upstream }) =>
    upstream.profile === undefined ? [] : [{ name: server.name, profile: upstream.profile }],
  );
  const instructions = live
    .flatMap(({ name, profile }) =>
      profile.instructions === undefined ? [] : [`# ${name}\n\n${profile.instructions}`],
    )
    .join('\n\n');
  const isWhole = live.length === catalog.members.length;
  const result = {
    resultType: 'complete',
    supportedVersions: options.supported,
    capabilities: capabilities(live.map(({ profile }) => declaredBy(profile))),
    ...(instructions === '' ? {} : { instructions }),
    ttlMs: isWhole ? options.defaultTtlMs : 0,
    cacheScope: catalog.members.some(({ instances }) => instances !== undefined) ? 'private' : 'public',
    _meta: { [metaKey.serverInfo]: identity },
  };
  return resultReply(call, [Buffer.from(JSON.stringify(result))]);
}

export const supportedVersions: readonly string[] = [modernVersion];
