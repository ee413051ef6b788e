/** The channel to a child that another process runs: messages of the one dialect, over the link to that process. */
import type { AskRoots } from './caller-roots.ts';
import type { Channel, Exchange, Outgoing } from './channel.ts';
import type { Profile } from './connection.ts';
import type { OwnedLink } from './owned-link.ts';
import type { RequestIds } from './slots.ts';

/** Lasts for as long as the child is up; its link goes on. */
export class OwnedChannel implements Channel {
  readonly transport = 'owned';
  readonly profile: Profile;
  readonly ids: RequestIds;
  readonly #link: OwnedLink;

  constructor(link: OwnedLink, profile: Profile) {
    this.#link = link;
    this.ids = link.ids;
    this.profile = profile;
  }

  send(outgoing: Outgoing, exchange: Exchange): void {
    this.#link.send(outgoing, exchange, this.#link.isUsed(this));
  }

  post(body: Buffer): Promise<void> {
    if (this.#link.isUsed(this)) this.#link.post(body);
    return Promise.resolve();
  }

  leave(id: number, why: 'refused' | 'cancelled'): void {
    this.#link.tellLeft(id, why);
  }

  rootsChanged(ask: AskRoots): void {
    this.#link.rootsChanged(ask);
  }

  cancel(id: number): void {
    this.#link.cancel(id);
  }

  /** What was sent may still be answered, since the owner knows best what became of it. */
  close(): Promise<void> {
    this.#link.leave(this);
    return Promise.resolve();
  }
}
