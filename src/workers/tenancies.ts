/** Which instances of single callers other processes use: one that nobody uses any more ends. */
import type { Instances } from '../upstream/instances.ts';

interface Tenancy {
  users: number;
  timer: NodeJS.Timeout | undefined;
}

/** A process that lost its connection may come back. */
const absenceMs = 2_000;

export class Tenancies {
  readonly #known = new Map<Instances, Map<string, Tenancy>>();

  /** Somebody uses the context's instance, which is started where there is none. */
  enter(instances: Instances, context: string): void {
    const contexts = this.#known.get(instances) ?? new Map<string, Tenancy>();
    this.#known.set(instances, contexts);
    const tenancy = contexts.get(context) ?? { users: 0, timer: undefined };
    contexts.set(context, tenancy);
    clearTimeout(tenancy.timer);
    tenancy.users++;
    instances.need(context);
  }

  /** Somebody does not; for good, or because its connection is gone. */
  leave(instances: Instances, context: string, isGood: boolean): void {
    const tenancy = this.#known.get(instances)?.get(context);
    if (tenancy === undefined) return;
    tenancy.users--;
    if (tenancy.users > 0) return;
    const end = (): void => {
      this.#forget(instances, context);
      instances.end(context);
    };
    if (isGood) end();
    else tenancy.timer = setTimeout(end, absenceMs).unref();
  }

  /** Ends none. */
  close(): void {
    for (const contexts of this.#known.values())
      for (const { timer } of contexts.values()) clearTimeout(timer);
    this.#known.clear();
  }

  #forget(instances: Instances, context: string): void {
    const contexts = this.#known.get(instances);
    contexts?.delete(context);
    if (contexts?.size === 0) this.#known.delete(instances);
  }
}
