/** The log level of a session that carries many calls: the most verbose that any of them asked for. */
import type { Call } from '../protocol/call.ts';
import { find, textOf } from '../protocol/json.ts';
import { logLevels } from '../protocol/log-levels.ts';
import { metaKey } from '../protocol/message.ts';

export class SessionLevel {
  #at = logLevels.length;

  /** Another session, of which nobody asked for anything yet. */
  reset(): void {
    this.#at = logLevels.length;
  }

  /** The level that the server has to be told for this call; undefined where it tells of enough. What each call gets is filtered. */
  wanted({ request }: Call): string | undefined {
    const wanted = textOf(request.bytes, find(request.meta, metaKey.logLevel));
    const at = wanted === undefined ? -1 : logLevels.indexOf(wanted);
    if (at < 0 || at >= this.#at) return undefined;
    this.#at = at;
    return wanted;
  }
}
