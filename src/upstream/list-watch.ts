/** The stream on which an upstream tells of changed lists, where it has one. */
import { type ListKind, lists } from '../protocol/methods.ts';
import type { Connection, Profile } from './connection.ts';
import { canWatch } from './key-watch.ts';
import type { WatchEvents } from './watch.ts';

export interface ListWatchEvents extends Pick<WatchEvents, 'count' | 'random' | 'now'> {
  /** It is open; `again` where it was before, so that a change may have been missed. */
  open(kinds: readonly ListKind[], again: boolean): void;
  ended(): void;
}

/** Whether a server with this profile says that it tells of changes of this list. */
export const declaresChanges = (profile: Profile, kind: ListKind): boolean => {
  const capability = profile.capabilities[lists[kind].capability];
  return (
    typeof capability === 'object' &&
    capability !== null &&
    (capability as { listChanged?: unknown }).listChanged === true
  );
};

/** Keeps the stream open until the returned function is called; undefined where there is nothing to hear. */
export function watchLists(
  connection: Connection,
  profile: Profile,
  { open, ended, count, random, now }: ListWatchEvents,
): (() => void) | undefined {
  const kinds = (['tools', 'prompts', 'resources'] as const).filter((kind) => declaresChanges(profile, kind));
  // Without changed lists, the stream of a legacy server still carries what its resources do.
  const isWatched = profile.dialect.era === 'legacy' && canWatch(profile);
  if (kinds.length === 0 && !isWatched) return undefined;
  let again = false;
  return connection.watch(kinds, {
    open: () => {
      open([...kinds, 'templates'], again);
      again = true;
    },
    ended,
    ...(count === undefined ? {} : { count }),
    random,
    now,
  });
}
