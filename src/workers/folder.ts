/** The private folder of a start, where its sockets are: nobody but this user gets into it. */
import { rmSync } from 'node:fs';
import { chmod, lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface PrivateFolder {
  readonly path: string;
  /** Removes it with all that is in it, at once. */
  remove(): void;
}

/** The address of a Unix socket has 108 bytes, the last of them zero; where it is longer, Node.js cuts it. */
const socketPathBytesMax = 103;
/** The longest name of a socket in it. */
const longestSocket = 'owner.sock';
const probeMs = 1_000;
const form = /^mcpyard-(\d+)-[A-Za-z0-9]{6}$/;

const failure = (message: string, cause?: unknown): Error =>
  Object.assign(new Error(message, { cause }), { code: 'EWORKERS' });

function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Whether somebody takes connections there, maybe a process whose number means nothing here. */
const isTaken = (socket: string): Promise<boolean> =>
  new Promise((resolve) => {
    const done = (is: boolean) => (): void => {
      probe.destroy();
      resolve(is);
    };
    const probe = connect(socket, done(true));
    probe.on('error', done(false));
    probe.setTimeout(probeMs, done(true));
  });

/** Removes what starts left that were killed; what can't be looked at stays. */
async function sweep(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const pid = Number(form.exec(name)?.[1]);
    if (!(pid > 0) || isRunning(pid)) continue;
    const folder = path.join(parent, name);
    const { uid } = await lstat(folder);
    if (uid !== process.getuid?.() || (await isTaken(ownerSocket(folder)))) continue;
    await rm(folder, { recursive: true, force: true });
  }
}

/** Makes it in $RUNTIME_DIRECTORY, else in the folder for temporary files; rejects with an error that says what to do. */
export async function makePrivateFolder(env: NodeJS.ProcessEnv): Promise<PrivateFolder> {
  const given = env['RUNTIME_DIRECTORY']?.split(':')[0];
  const parent = given || tmpdir();
  await sweep(parent).catch(() => undefined);
  let folder: string;
  try {
    folder = await mkdtemp(path.join(parent, `mcpyard-${process.pid}-`));
    await chmod(folder, 0o700);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw failure(
      `workers: no folder for their sockets can be made in ${parent} (RUNTIME_DIRECTORY or TMPDIR names another): ${why}`,
      cause,
    );
  }
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  if (Buffer.byteLength(path.join(folder, longestSocket)) <= socketPathBytesMax)
    return { path: folder, remove };
  remove();
  throw failure(
    `workers: ${folder} is too long for the path of a socket: RUNTIME_DIRECTORY or TMPDIR can name a shorter one`,
  );
}

/** The sockets in it: of the owner of the children, and of each worker. */
export const ownerSocket = (folder: string): string => path.join(folder, longestSocket);
export const workerSocket = (folder: string, name: string): string => path.join(folder, `${name}.sock`);
