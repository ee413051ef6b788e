/** Passes on what clients tell beyond what the protocol knows, where its upstream can be told. */
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Caller } from '../protocol/call.ts';
import type { NotificationMessage } from '../protocol/message.ts';
import { isVendorNotification } from '../protocol/methods.ts';
import { type ToldOptions, toldBy } from './told.ts';

export interface NoticesOptions extends ToldOptions {
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Takes one notification of a client's; never fails. */
export type Notices = (message: NotificationMessage, caller: Caller) => void;

export const notices =
  (options: NoticesOptions): Notices =>
  (message, caller) => {
    if (!isVendorNotification(message.method)) return;
    pass(message, caller, options).catch((error: unknown) =>
      options.log.error({ err: error, method: message.method }, 'a notification could not be passed on'),
    );
  };

async function pass(message: NotificationMessage, caller: Caller, options: NoticesOptions): Promise<void> {
  const told = await toldBy(message, caller, options);
  const live = told?.found.member.upstream.live;
  if (told === undefined || live === undefined) {
    options.metrics.notification(message.method, 'dropped');
    return;
  }
  const { found, member } = told;
  await live.connection.pass(message, {
    member,
    name: member === undefined ? undefined : found.localKey,
    paramHeaders: [],
  });
}
