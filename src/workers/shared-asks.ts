/** Lists that several processes ask of one child at the same time are asked for once. */
import type { Asked } from '../upstream/ask-exchange.ts';
import type { Connection } from '../upstream/connection.ts';

export class SharedAsks {
  readonly #underWay = new WeakMap<Connection, Map<string, Promise<Asked>>>();

  /** The answer to the same request that is under way, or to this one. */
  ask(
    connection: Connection,
    method: string,
    params: Readonly<Record<string, unknown>>,
    timeoutMs: number,
  ): Promise<Asked> {
    const all = this.#underWay.get(connection) ?? new Map<string, Promise<Asked>>();
    this.#underWay.set(connection, all);
    const key = `${method}\n${JSON.stringify(params)}`;
    const known = all.get(key);
    if (known !== undefined) return known;
    const asked = connection.ask(method, params, timeoutMs).finally(() => {
      if (all.get(key) === asked) all.delete(key);
    });
    all.set(key, asked);
    return asked;
  }

  /** Something has changed: what is under way may be of before, and is no answer to who asks from now on. */
  changed(connection: Connection): void {
    this.#underWay.delete(connection);
  }
}
