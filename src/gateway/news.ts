/** What one process tells the others of what servers told it, for clients that look to another one. */
import type { Catalogs } from '../catalog/catalogs.ts';
import type { ListKind } from '../protocol/methods.ts';
import type { ChangedKind, Changes } from './changes.ts';
import type { Logs } from './logs.ts';

export type News =
  /** Lists of these servers are others now; whoever is told of it may ask any process for them. */
  | {
      readonly kind: 'lists';
      readonly notice: ChangedKind;
      readonly upstreams: readonly string[];
      readonly context?: string;
    }
  /** A log line that belongs to no call, of one caller's own server; `message` is the whole notification. */
  | {
      readonly kind: 'log';
      readonly upstream: string;
      readonly context: string;
      readonly level: string;
      readonly message: string;
    };

/** Tells all others; resolves when they have heard it, or will not. */
export type Spread = (news: News) => Promise<void>;

interface NewsParts {
  readonly catalogs: Catalogs;
  readonly changes: Changes;
  readonly logs: Logs;
}

const listsOf: Record<ChangedKind, readonly ListKind[]> = {
  tools: ['tools'],
  prompts: ['prompts'],
  resources: ['resources', 'templates'],
};

/** Takes what another process tells; what is one caller's is told here too, unless its server has told this process as well. */
export function hearNews(news: News, { catalogs, changes, logs }: NewsParts): void {
  switch (news.kind) {
    case 'lists': {
      const { notice, upstreams, context } = news;
      const isHeard = upstreams.map((name) => catalogs.doubt(name, listsOf[notice], context));
      if (context !== undefined && isHeard.includes(false)) changes.tell(notice, context);
      return;
    }
    case 'log':
      if (!catalogs.doubt(news.upstream, [], news.context))
        logs.announce(news.context, news.level, Buffer.from(news.message));
      return;
    default:
      throw news satisfies never;
  }
}
