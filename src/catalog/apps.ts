/** MCP Apps: where the apps of tools lie, and tools that apps call by the own names of their server. */
import { type Entry, withAppUri } from './entry.ts';
import { type Merged, remade } from './merge.ts';

/** The only tool that any server calls so; undefined where there is none, or more than one. */
export function onlyCalled(name: string, { entries }: Merged): Entry | undefined {
  const [entry, ...others] = entries.filter(({ localKey }) => localKey === name);
  return others.length > 0 ? undefined : entry;
}

export class AppUris {
  #kept: { readonly from: readonly Merged[]; readonly merged: Merged } | undefined;

  /** The tools, with aliases for apps whose URIs are another's; made anew only where one of the lists is another. */
  of(
    tools: Merged,
    owners: () => readonly Merged[],
    outward: (uri: string, upstream: string) => string,
  ): Merged {
    if (!tools.entries.some(({ appUri }) => appUri !== undefined)) return tools;
    const from = [tools, ...owners()];
    if (this.#kept?.from.every((one, i) => one === from[i]) === true) return this.#kept.merged;
    const merged = remade('tools', tools, (entry) =>
      entry.appUri === undefined ? entry : withAppUri(entry, outward(entry.appUri, entry.upstream)),
    );
    this.#kept = { from, merged };
    return merged;
  }
}
