/** One child process: its pipes, its environment, and its end with all that it started. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { childEnv } from './child-env.ts';
import { endProcessTree, ProcessTree } from './process-tree.ts';
import { spawnFailure } from './spawn-failure.ts';

/** What to run: one program with its arguments verbatim, no shell. */
export interface ChildTarget {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
}

export interface ChildLog {
  debug(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** How a child came to be of no more use; `error` where it was not by its exit: it never started, or closed its pipes. */
export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
}

export interface ChildOptions extends ChildTarget {
  /** A process that runs this program already, started by `spawnChild` with this marker; without it one is started. */
  readonly running?: ChildProcess;
  /** Unique to this child; by it are found those of its processes that detach themselves. */
  readonly marker: string;
  /** What may wait to be written, the pipe's own buffer aside. */
  readonly queueBytesMax: number;
  readonly log: ChildLog;
  onStdout(chunk: Buffer): void;
  onStderr(chunk: Buffer): void;
  /** Called once, never before `spawn` returns, and after all output that came before the exit. */
  onExit(exit: ChildExit): void;
}

const eofMs = 1000;
const lookMs = 500;
/** How long output may follow an exit, and an exit a closed pipe. */
const settleMs = 300;
const reapMs = 200;
const joinBytesMax = 65_536;

/** Whether a promise settles within this time. */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const done = promise.then(() => {
    settled = true;
  });
  const timer = new AbortController();
  await Promise.race([done, delay(ms, undefined, { signal: timer.signal }).catch(() => {})]);
  timer.abort();
  // After a long turn of the event loop timers come first, before what has long been there to read.
  if (!settled) await turn();
  return settled;
}

/** Starts a process of which nothing is read yet. Some failures are returned and some come as an event; leading a session of its own, the child can be signalled with all that it started, and a Ctrl-C meant for the gateway doesn't reach it. */
export function spawnChild({ command, args, cwd, env }: ChildTarget, marker: string): ChildProcess | Error {
  const options = {
    cwd,
    env: childEnv(process.env, env, marker),
    detached: true,
    windowsHide: true,
  } as const;
  try {
    return spawn(command, args, { ...options, stdio: 'pipe' });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** A running program, or one that failed to start. */
export class Child {
  readonly #options: ChildOptions;
  readonly #exited: Promise<void>;
  #process: ChildProcess | undefined;
  #tree: ProcessTree | undefined;
  #hasExited = false;
  #reported = false;
  #stopping: Promise<void> | undefined;
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  private constructor(options: ChildOptions) {
    this.#options = options;
    const { command, cwd, env, marker } = options;
    const failed = (cause: Error): void => {
      const attempt = { command, cwd, path: childEnv(process.env, env, marker)['PATH'] };
      void spawnFailure(attempt, cause).then((error) => this.#report({ code: null, signal: null, error }));
    };
    const child = options.running ?? spawnChild(options, marker);
    if (child instanceof Error) {
      this.#exited = Promise.resolve();
      failed(child);
      return;
    }
    this.#process = child;
    if (child.pid !== undefined) this.#tree = ProcessTree.of(child.pid, marker);
    this.#exited = new Promise((resolve) => {
      child.once('exit', () => resolve());
    });
    child.on('error', (error) => {
      if (child.pid === undefined) failed(error);
      else options.log.warn({ err: error, pid: child.pid }, 'child process error');
    });
    this.#listen(child);
  }

  /** Starts a process; whatever goes wrong with that arrives as `onExit`. */
  static spawn(options: ChildOptions): Child {
    return new Child(options);
  }

  /** Undefined where the program could not be started. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Whether it still takes input: it was started, it runs, and neither has it closed its input nor is it being stopped. */
  get writable(): boolean {
    return this.#process?.stdin?.writable === true && !this.#hasExited && this.#stopping === undefined;
  }

  /** Queues bytes, all or none, to be written with all else of this turn of the event loop; false where the queue is full or nobody reads it. */
  write(...chunks: readonly Buffer[]): boolean {
    if (!this.writable) return false;
    let bytes = 0;
    for (const chunk of chunks) bytes += chunk.length;
    const queuedBytes = this.#pendingBytes + (this.#process?.stdin?.writableLength ?? 0);
    if (queuedBytes + bytes > this.#options.queueBytesMax) return false;
    if (this.#pending.length === 0) setImmediate(() => this.#flush());
    this.#pending.push(...chunks);
    this.#pendingBytes += bytes;
    return true;
  }

  /** Closes its input, sends SIGTERM to all of its tree after 1 s and SIGKILL after 2 s more; resolves when all are gone, after 4 s at most. Safe to call twice. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  /** SIGKILL to all of its tree, within this turn of the event loop. */
  kill(): void {
    this.#tree?.killNow();
  }

  #listen(child: ChildProcess): void {
    const options = this.#options;
    const closed = new Promise<void>((resolve) => {
      child.once('close', () => resolve());
    });
    child.once('exit', (code, signal) => {
      this.#hasExited = true;
      void this.stop();
      void within(settleMs, closed).then(() => this.#report({ code, signal }));
    });
    child.stdin?.on('error', (error) => this.#lost('it closed its standard input', error));
    child.stdout?.on('data', (chunk: Buffer) => options.onStdout(chunk));
    child.stderr?.on('data', (chunk: Buffer) => options.onStderr(chunk));
    child.stdout?.on('error', (error) => this.#lost('its standard output broke', error));
    child.stdout?.on('end', () => this.#lost('it closed its standard output'));
    child.stderr?.on('error', (error) =>
      options.log.debug({ err: error }, 'standard error of a child broke'),
    );
  }

  /** A pipe closes a moment before the exit is known, and the exit says more. */
  #lost(why: string, cause?: Error): void {
    if (this.#hasExited || this.#stopping !== undefined || this.pid === undefined) return;
    void within(settleMs, this.#exited).then((hasExited) => {
      if (hasExited) return;
      const error = new Error(why, cause === undefined ? undefined : { cause });
      void this.stop();
      this.#report({ code: null, signal: null, error });
    });
  }

  #report(exit: ChildExit): void {
    if (this.#reported) return;
    this.#reported = true;
    this.#process?.stdin?.destroy();
    this.#options.onExit(exit);
  }

  #flush(): void {
    const stdin = this.#process?.stdin;
    const chunks = this.#pending;
    const bytes = this.#pendingBytes;
    this.#pending = [];
    this.#pendingBytes = 0;
    if (stdin?.writable !== true || bytes === 0) return;
    if (bytes <= joinBytesMax) {
      stdin.write(Buffer.concat(chunks, bytes));
      return;
    }
    stdin.cork();
    for (const chunk of chunks) stdin.write(chunk);
    stdin.uncork();
  }

  async #stop(): Promise<void> {
    const tree = this.#tree;
    if (tree === undefined) return;
    const { log } = this.#options;
    const termAt = performance.now() + eofMs;
    this.#flush();
    if (!this.#hasExited) {
      // Looked at first, since a launcher that ends at once takes along who its children are.
      await within(lookMs, tree.look());
      this.#process?.stdin?.end();
      if (await within(termAt - performance.now(), this.#exited)) await tree.gone(termAt - performance.now());
    }
    const ended = await endProcessTree(tree);
    await within(reapMs, this.#exited);
    this.#process?.stdout?.destroy();
    this.#process?.stderr?.destroy();
    if (!ended) log.warn({ pid: this.pid }, 'processes of a child are left that SIGKILL did not end');
  }
}
