/** One upstream of a config, opened without a gateway around it, and what it told. */
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSeal } from '../../src/auth/seal.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { createLog } from '../../src/observe/log.ts';
import { Secrets } from '../../src/observe/secrets.ts';
import type { ListKind } from '../../src/protocol/methods.ts';
import { openUpstream } from '../../src/upstream/open.ts';
import { ReadBuffers } from '../../src/upstream/read-buffers.ts';
import type { Live } from '../../src/upstream/state.ts';
import { SealedTaskIds } from '../../src/upstream/task-ids.ts';
import type { Upstream } from '../../src/upstream/upstream.ts';

export interface Opened {
  readonly upstream: Upstream;
  /** `up`, `down: …`, `changed tools …`, `failed …` and `dropped …`, in their order. */
  readonly told: string[];
  /** Resolves with the live upstream, or rejects with why it is down, as soon as it is either. */
  settled(): Promise<Live>;
}

const opened: Upstream[] = [];

/** Opens and starts the upstream of a server as the config file would have it. */
export function openOne(server: object, more: object = {}): Opened {
  const config = parseConfig(JSON.stringify({ ...more, servers: { up: server } }), {
    file: join(tmpdir(), 'config.yaml'),
    env: process.env,
    readSecretFile: () => '',
  });
  const [first] = config.servers;
  if (first === undefined) throw new Error('the config has no server');
  const told: string[] = [];
  const names = (kinds: readonly ListKind[]): string => kinds.join(' ');
  const upstream = openUpstream(first, {
    config,
    identity: { name: 'gateway', version: '1.0.0' },
    log: createLog({ level: 'silent', secrets: new Secrets() }),
    events: {
      up: () => told.push('up'),
      down: (_, error, restart) => told.push(`${restart ? 'lost' : 'down'}: ${error.message}`),
      stable: () => told.push('stable'),
      asleep: () => told.push('asleep'),
      listChanged: (_, kinds) => told.push(`changed ${names(kinds)}`),
      resourceUpdated: (_, uri) => told.push(`updated ${uri}`),
      taskChanged: (_, { taskId }) => told.push(`task ${taskId}`),
      logged: (_, level) => told.push(`logged ${level}`),
      mayHaveChanged: (_, kinds) => told.push(`may have changed ${names(kinds)}`),
      failed: (_, reason) => told.push(`failed ${reason}`),
      listening: () => undefined,
      passed: () => undefined,
      dropped: (_, kind) => told.push(`dropped ${kind}`),
    },
    stderr: () => undefined,
    mask: (text) => text,
    instance: `test-${process.pid}`,
    parkSeal: createSeal(Buffer.alloc(32), 'park', randomBytes),
    stateSeal: createSeal(Buffer.alloc(32), 'state', randomBytes),
    taskIds: new SealedTaskIds(createSeal(Buffer.alloc(32), 'task', randomBytes)),
    replica: 'here',
    readBuffers: new ReadBuffers(),
    randomText: () => randomBytes(8).toString('hex'),
    now: () => performance.now(),
    random: () => 0.5,
  });
  opened.push(upstream);
  upstream.start();
  return {
    upstream,
    told,
    async settled() {
      while (upstream.state.kind === 'starting') await upstream.state.done;
      if (upstream.state.kind === 'down') throw upstream.state.error;
      return upstream.ready(0);
    },
  };
}

/** Stops all that was opened; for `afterEach`. */
export const closeAll = async (): Promise<void> => {
  await Promise.all(opened.splice(0).map((upstream) => upstream.stop()));
};
