/** `resources/subscribe` of the legacy revisions: a listen of the middle whose notices go to the session's own stream. */
import type { Handler } from '../gateway/layers.ts';
import { Call, type Caller } from '../protocol/call.ts';
import { code, own, RpcError } from '../protocol/errors.ts';
import type { ScanOptions } from '../protocol/json.ts';
import { ownRequest } from './augment.ts';
import type { LiveSession } from './live-session.ts';

export interface SubscriptionContext {
  readonly uri: string;
  readonly handler: Handler;
  readonly caller: Caller;
  readonly version: string;
  readonly meta: string;
  readonly scan: ScanOptions;
  readonly live: LiveSession;
}

interface Notice {
  readonly method?: string;
  readonly params?: {
    readonly uri?: string;
    readonly notifications?: { readonly resourceSubscriptions?: unknown };
  };
}

const updated = (uri: string): Buffer =>
  Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } }));

/** Resolves once the listen is acknowledged with the URI; rejects with an RpcError where it is not. */
export function subscribe(context: SubscriptionContext): Promise<void> {
  const { uri, handler, caller, version, meta, scan, live } = context;
  const request = ownRequest(
    'subscriptions/listen',
    { notifications: { resourceSubscriptions: [uri] } },
    meta,
    scan,
  );
  return new Promise((resolve, reject) => {
    const end = (): void => call.signal.abort(new RpcError(own.cancelled, 'The subscription was ended'));
    const deliver = (message: Buffer): void => {
      const notice = JSON.parse(message.toString('utf8')) as Notice;
      if (notice.method === 'notifications/resources/updated') live.tell(updated(String(notice.params?.uri)));
      if (notice.method !== 'notifications/subscriptions/acknowledged') return;
      if (notice.params?.notifications?.resourceSubscriptions === undefined) {
        reject(new RpcError(code.invalidParams, `No server can watch ${uri}`, { data: { uri } }));
        // The listener is set only after the acknowledgement was told.
        queueMicrotask(end);
        return;
      }
      try {
        live.subscribed(uri, end);
        resolve();
      } catch (error) {
        reject(error);
      }
    };
    const call = new Call(request, caller, undefined, deliver, version);
    handler(call).then(
      () => live.unsubscribe(uri),
      (error: unknown) => reject(error),
    );
  });
}
