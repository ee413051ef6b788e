/** A worker: the whole gateway but its children, and told by the primary what to do. */
import { existsSync } from 'node:fs';
import { type App, startApp } from '../app.ts';
import { createLog, type RootLog } from '../observe/log.ts';
import { Secrets } from '../observe/secrets.ts';
import { WorkerAllowances } from '../policy/worker-allowances.ts';
import type { Seat } from '../seat.ts';
import {
  type Answer,
  configOf,
  parseToWorker,
  type Start,
  type ToPrimary,
  type ToWorker,
} from './control.ts';
import { figuresOf } from './figures.ts';
import { ownerSocket, workerSocket } from './folder.ts';

/** Those of the primary's group reach it too; it goes when the primary says so. */
const ignored = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

const tell = (message: ToPrimary): Promise<void> =>
  new Promise((resolve) => {
    // The primary that is gone takes this process with it.
    if (process.send === undefined) resolve();
    else process.send(message, () => resolve());
  });

const allowancesOf = ({ names }: Start): WorkerAllowances =>
  new WorkerAllowances({
    workers: names.length,
    send: (told) => void tell({ kind: 'allowance', told }),
    defer: setImmediate,
  });

const seatOf = ({ name, names, folder, token }: Start, allowances: WorkerAllowances): Seat => ({
  name,
  owner: { socket: ownerSocket(folder), token },
  peers: {
    names: names.filter((one) => one !== name),
    socketOf: (of) => workerSocket(folder, of),
    socket: workerSocket(folder, name),
    token,
  },
  allowances,
});

/** Serves until the primary says that it is over, or is gone; never returns. */
export function runWorker(env: NodeJS.ProcessEnv): Promise<never> {
  for (const signal of ignored) process.on(signal, () => undefined);
  process.once('disconnect', () => process.exit(1));
  let working: Promise<Working> | undefined;
  let allowances: WorkerAllowances | undefined;
  process.on('message', (message: unknown) => {
    const order = parseToWorker(message);
    if (order === undefined) return;
    if (order.kind === 'start') {
      allowances ??= allowancesOf(order);
      working ??= begin(order, env, allowances);
    } else if (order.kind === 'allowance') allowances?.receive(order.told);
    else void working?.then(({ obey }) => obey(order));
  });
  void tell({ kind: 'here' });
  return new Promise(() => undefined);
}

interface Working {
  obey(order: Exclude<ToWorker, Start | { readonly kind: 'allowance' }>): void;
}

async function begin(start: Start, env: NodeJS.ProcessEnv, allowances: WorkerAllowances): Promise<Working> {
  const config = configOf(start.config);
  const secrets = new Secrets(config.secrets);
  const root = createLog({ level: config.log.level, secrets });
  const log: RootLog = { ...root.child({ worker: start.name }), setLevel: root.setLevel };
  allowances.start();
  try {
    const secret = Buffer.from(start.secret, 'base64');
    const app = await startApp(config, { log, env, secrets, secret }, seatOf(start, allowances));
    await tell({ kind: 'ready', endpoint: app.endpoint });
    return { obey: obedience(app) };
  } catch (error) {
    const { message: said, code } = error as NodeJS.ErrnoException;
    const message = existsSync(start.folder)
      ? said
      : `the private folder ${start.folder} is gone: restart mcpyard, and let no cleaner remove it`;
    if (code === undefined) log.error({ err: error }, 'the worker could not be started');
    await tell({ kind: 'failed', message, ...(code === undefined ? {} : { code }) });
    process.exit(1);
  }
}

function obedience(app: App): Working['obey'] {
  /** What the config of a round waits for. */
  const decisions = new Map<number, (isTaken: boolean) => void>();

  async function prepare(round: number, plain: Start['config']): Promise<void> {
    const agreed = async (): Promise<boolean> => {
      const decided = new Promise<boolean>((resolve) => decisions.set(round, resolve));
      await tell({ kind: 'prepared', round });
      return decided;
    };
    const outcome = await app.reload(() => Promise.resolve(configOf(plain)), agreed);
    decisions.delete(round);
    switch (outcome.kind) {
      case 'taken':
        return tell({ kind: 'taken', round, endpoint: app.endpoint });
      case 'refused':
        return tell({ kind: 'refused', round, message: outcome.error.message });
      case 'passed-over':
        return tell({ kind: 'passed', round });
      default:
        throw outcome satisfies never;
    }
  }

  return (order) => {
    switch (order.kind) {
      case 'prepare':
        void prepare(order.round, order.config);
        return;
      case 'decide':
        decisions.get(order.round)?.(order.isTaken);
        return;
      case 'ask':
        void answer(order.id, partsOf(order.question, app));
        return;
      case 'stop':
        app.stop(order.drainMs, order.hasGrace).then(
          () => process.exit(0),
          () => process.exit(1),
        );
        return;
      default:
        throw order satisfies never;
    }
  };
}

/** One after the other, each when the one before has gone out. */
async function answer(id: number, parts: AsyncIterable<Answer>): Promise<void> {
  for await (const part of parts) await tell({ kind: 'answer', id, part });
  await tell({ kind: 'answer', id });
}

async function* partsOf(question: 'health' | 'figures', app: App): AsyncGenerator<Answer> {
  if (question === 'health') yield { kind: 'health', upstreams: app.health() };
  else yield* figuresOf(app.metrics.sources);
}
