/** All that a child started: its session and group, their descendants, and whatever carries its marker. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  mapFiles,
  type ProcessEntry,
  readMarker,
  readMarkerNow,
  readProcess,
  readProcesses,
  readProcessesNow,
  readProcessNow,
} from './process-table.ts';

const termMs = 2000;
const killMs = 800;
/** How often a gateway that ends at once looks who is left. */
const killRounds = 3;
const pollMsMin = 10;
const pollMsMax = 100;

interface Root {
  readonly pid: number;
  readonly start: number;
}

/** Adds to `seeds` all that descends from them. */
function withDescendants(all: readonly ProcessEntry[], seeds: Iterable<ProcessEntry>): Set<ProcessEntry> {
  const children = new Map<number, ProcessEntry[]>();
  for (const entry of all) {
    const siblings = children.get(entry.parent);
    if (siblings === undefined) children.set(entry.parent, [entry]);
    else siblings.push(entry);
  }
  // A Set visits what is added while it is walked.
  const found = new Set(seeds);
  for (const entry of found) for (const child of children.get(entry.pid) ?? []) found.add(child);
  return found;
}

/** Sends a signal, or with 0 only asks; false where nothing was there to take it. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

const isMarkedBy =
  (matches: (marker: string) => boolean) =>
  async (entry: ProcessEntry): Promise<ProcessEntry | undefined> => {
    const marker = await readMarker(entry.pid);
    return marker !== undefined && matches(marker) ? entry : undefined;
  };

/** A set of processes that is to end as one; it remembers who belongs to it between looks. */
export class ProcessTree {
  readonly #root: Root | undefined;
  readonly #matches: (marker: string) => boolean;
  #known: readonly ProcessEntry[] = [];
  /** Without /proc there is only the group to go by. */
  #blind = false;

  private constructor(root: Root | undefined, matches: (marker: string) => boolean) {
    this.#root = root;
    this.#matches = matches;
  }

  /** The tree of a child that was just spawned `detached` (so that it leads its own session) with this marker in its environment. */
  static of(pid: number, marker: string): ProcessTree {
    const root = { pid, start: readProcessNow(pid)?.start ?? 0 };
    return new ProcessTree(root, (other) => other === marker);
  }

  /** All processes whose marker matches, with what descends from them. */
  static marked(matches: (marker: string) => boolean): ProcessTree {
    return new ProcessTree(undefined, matches);
  }

  /** Finds who belongs to the tree now; false where nobody does. */
  async look(): Promise<boolean> {
    const all = await readProcesses();
    this.#blind = all.length === 0;
    if (this.#blind) return this.#groupLives();
    const { theirs, members, others } = this.#sorted(all);
    const marked = await mapFiles(others, isMarkedBy(this.#matches));
    this.#known = [...withDescendants(theirs, [...members, ...marked])];
    return this.#known.length > 0;
  }

  /** SIGKILL to all that belongs to the tree now, without a turn of the event loop, for a gateway that ends at once. */
  killNow(): void {
    const root = this.#root?.pid;
    for (let round = 0; round < killRounds; round++) {
      const { theirs, members, others } = this.#sorted(readProcessesNow());
      const marked = others.filter(({ pid }) => this.#matches(readMarkerNow(pid) ?? ''));
      const all = withDescendants(theirs, [...members, ...marked]);
      if (root !== undefined) send(-root, 'SIGKILL');
      for (const { pid } of all) send(pid, 'SIGKILL');
      // Whoever was started meanwhile is found in the next round.
      if (all.size === 0) return;
    }
  }

  /** All processes that are not the gateway's own: who is known to belong to the tree, and who may. */
  #sorted(all: readonly ProcessEntry[]) {
    const self = all.find((entry) => entry.pid === process.pid);
    const theirs = all.filter(
      (entry) => entry.pid > 1 && entry.pid !== process.pid && entry.group !== self?.group && entry.alive,
    );
    const members = withDescendants(theirs, this.#seeds(theirs));
    const others = theirs.filter((entry) => !members.has(entry) && entry.start >= (this.#root?.start ?? 0));
    return { theirs, members, others };
  }

  /** Signals all that the last look found, but for pids that have passed to another process since. */
  async signal(signal: NodeJS.Signals): Promise<void> {
    const root = this.#root?.pid;
    if (this.#blind && root !== undefined) {
      send(-root, signal);
      return;
    }
    let groupTold = false;
    for (const known of this.#known) {
      const now = await readProcess(known.pid);
      if (now?.start !== known.start || !now.alive) continue;
      if (now.group !== root) send(now.pid, signal);
      else if (!groupTold) groupTold = send(-root, signal);
    }
  }

  /** Whether all that the last look found has ended, waiting for it at most this long. */
  async gone(withinMs: number): Promise<boolean> {
    const deadline = performance.now() + withinMs;
    for (let pollMs = pollMsMin; ; pollMs = Math.min(pollMs * 2, pollMsMax)) {
      if (!(await this.#lives())) return true;
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) return false;
      await delay(Math.min(pollMs, leftMs));
    }
  }

  /** Who is in the child's session, and who was known before. */
  #seeds(all: readonly ProcessEntry[]): ProcessEntry[] {
    const starts = new Map(this.#known.map((entry) => [entry.pid, entry.start]));
    const root = this.#root;
    const reused = all.some((entry) => entry.pid === root?.pid && entry.start !== root.start);
    return all.filter(
      (entry) =>
        starts.get(entry.pid) === entry.start ||
        (root !== undefined && !reused && entry.session === root.pid && entry.start >= root.start),
    );
  }

  async #lives(): Promise<boolean> {
    if (this.#blind) return this.#groupLives();
    for (const known of this.#known) {
      const now = await readProcess(known.pid);
      if (now?.start === known.start && now.alive) return true;
    }
    return false;
  }

  #groupLives(): boolean {
    return this.#root !== undefined && send(-this.#root.pid, 0);
  }
}

/** A process shows no environment at the moment in which it becomes another program, so one look may miss it. */
async function lookAgain(tree: ProcessTree): Promise<boolean> {
  await delay(pollMsMin);
  return tree.look();
}

/** Ends a tree: SIGTERM, after 2 s SIGKILL; false where some of it still lives 0.8 s after that. */
export async function endProcessTree(tree: ProcessTree): Promise<boolean> {
  const killAt = performance.now() + termMs;
  // Each round signals only who came up since the last, as all others have ended.
  for (let leftMs = termMs; leftMs > 0; leftMs = killAt - performance.now()) {
    if (!(await tree.look()) && !(await lookAgain(tree))) return true;
    await tree.signal('SIGTERM');
    if (!(await tree.gone(killAt - performance.now()))) break;
  }
  const deadline = performance.now() + killMs;
  while (await tree.look()) {
    if (performance.now() >= deadline) return false;
    await tree.signal('SIGKILL');
    await tree.gone(pollMsMax);
  }
  return true;
}

/** A marker for one child; `instance` is what this gateway is called across restarts. */
export function newMarker(instance: string): string {
  const start = readProcessNow(process.pid)?.start ?? 0;
  return `${instance}:${process.pid}.${start}:${randomUUID()}`;
}

/** Whether a process now carries a marker that matches; it is looked for without turns of the event loop, which takes a tenth of the time. */
const isAnyMarked = (matches: (marker: string) => boolean): boolean =>
  readProcessesNow().some(({ pid, alive }) => alive && matches(readMarkerNow(pid) ?? ''));

/** Ends what an earlier run of the same instance has left behind because it was killed; nothing of a run that still lives. */
export async function endOrphans(instance: string): Promise<boolean> {
  const owners = readProcessesNow().filter((entry) => entry.alive);
  const alive = new Set(owners.map((entry) => `${entry.pid}.${entry.start}`));
  const prefix = `${instance}:`;
  const isOrphan = (marker: string): boolean => {
    const [owner, id, ...rest] = marker.slice(prefix.length).split(':');
    if (!marker.startsWith(prefix) || owner === undefined || id === undefined || rest.length > 0)
      return false;
    return !alive.has(owner);
  };
  if (!isAnyMarked(isOrphan)) {
    // Shown by none, as of a process that becomes another program in this moment.
    await delay(pollMsMin);
    if (!isAnyMarked(isOrphan)) return true;
  }
  return endProcessTree(ProcessTree.marked(isOrphan));
}
