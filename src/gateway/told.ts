/** Which upstream a message that nobody knows is meant for. */
import type { Catalog, Found } from '../catalog/catalog.ts';
import type { Catalogs } from '../catalog/catalogs.ts';
import type { Caller } from '../protocol/call.ts';
import { find, type Member, textOf } from '../protocol/json.ts';
import type { TaskIds } from '../upstream/task-ids.ts';
import { openTask } from './task.ts';

export interface ToldOptions {
  readonly catalogs: Catalogs;
  readonly taskIds: TaskIds;
}

/** The upstream, and where the message has its name for what it is about; undefined where it names nothing. */
export interface Told {
  readonly found: Found;
  readonly member: Member | undefined;
}

interface Parameters {
  readonly bytes: Buffer;
  readonly params: Member | undefined;
}

/**
 * A task, a tool or prompt, or a resource in `params` (`taskId`, `name`, `uri`, in this order) tells whose it is; where there is none that
 * is known, the only upstream of the config is meant. Undefined where nobody can tell.
 */
export async function toldBy(
  { bytes, params }: Parameters,
  caller: Caller,
  options: ToldOptions,
): Promise<Told | undefined> {
  const catalog = options.catalogs.of(caller);
  const at = (key: string) => {
    const member = find(params?.members, key);
    return { member, text: textOf(bytes, member) };
  };
  const task = at('taskId');
  const ofTask = task.text === undefined ? undefined : openTask(task.text, caller, options);
  if (ofTask !== undefined) return { found: ofTask, member: task.member };
  const name = at('name');
  const ofName = name.text === undefined ? undefined : named(name.text, catalog);
  if (ofName !== undefined) return { found: ofName, member: name.member };
  const uri = at('uri');
  const ofUri = uri.text === undefined ? undefined : await catalog.resolveUri(uri.text);
  if (ofUri?.kind === 'found') return { found: ofUri, member: uri.member };
  const [only, ...others] = catalog.members;
  if (only === undefined || others.length > 0) return undefined;
  return { found: { kind: 'found', member: only, localKey: '', entry: undefined }, member: undefined };
}

/** A tool or a prompt; undefined where there is neither, or both are there and of two upstreams. */
function named(name: string, catalog: Catalog): Found | undefined {
  const [first, second] = [catalog.find('tools', name), catalog.find('prompts', name)].filter(
    (one) => one?.kind === 'found',
  );
  return second !== undefined && second.member !== first?.member ? undefined : first;
}
