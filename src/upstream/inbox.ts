/** Sorts what an upstream sends beside its answers: to the call that it belongs to, to who watches, or nowhere. */
import { numericId, scanUpstream, type UpstreamMessage } from '../protocol/answer.ts';
import { find, jsonOf, type Members, type ScanOptions, textOf } from '../protocol/json.ts';
import { isLogged } from '../protocol/log-levels.ts';
import { metaKey } from '../protocol/message.ts';
import { isVendorNotification, type ListKind } from '../protocol/methods.ts';
import { splice } from '../protocol/splice.ts';
import type { CallExchange } from './exchange.ts';
import { type TaskNotice, taskNoticeOf } from './task-notice.ts';

export interface InboxOptions {
  readonly scan: ScanOptions;
  /** The open exchange with this id. */
  exchange(id: number): CallExchange | undefined;
  /** The one call that is unanswered; undefined where there is none, or more than one. */
  onlyExchange(): CallExchange | undefined;
  /** All that are open, the newest first, where they are one caller's. */
  ownCalls: (() => readonly CallExchange[]) | undefined;
  /** A log line of the one caller's server that belongs to no call. */
  logged: ((level: string, message: Buffer) => void) | undefined;
  /** The listen with this id. */
  watch(id: number): { opened(): void; ended(): void } | undefined;
  asked(message: UpstreamMessage & { readonly kind: 'request' }, exchange: CallExchange | undefined): void;
  listChanged(kinds: readonly ListKind[]): void;
  resourceUpdated(uri: string): void;
  taskChanged(notice: TaskNotice): void;
  /** A notification of a call went to its caller. */
  passed(kind: string): void;
  dropped(kind: string): void;
}

type Notification = UpstreamMessage & { readonly kind: 'notification' };

const changedKinds: Readonly<Record<string, readonly ListKind[]>> = {
  'notifications/tools/list_changed': ['tools'],
  'notifications/prompts/list_changed': ['prompts'],
  'notifications/resources/list_changed': ['resources', 'templates'],
};

/** Takes one message that came on the channel itself, or on the stream of `exchange`. */
export function sortMessage(bytes: Buffer, exchange: CallExchange | undefined, options: InboxOptions): void {
  const message = scanUpstream(bytes, options.scan);
  switch (message.kind) {
    case 'request':
      options.asked(message, exchange ?? options.onlyExchange());
      return;
    case 'notification':
      sortNotification(message, exchange, options);
      return;
    case 'result':
    case 'error':
    case 'noise':
      options.dropped(message.kind);
      return;
    default:
      throw message satisfies never;
  }
}

function sortNotification(
  message: Notification,
  exchange: CallExchange | undefined,
  options: InboxOptions,
): void {
  const kinds = Object.hasOwn(changedKinds, message.method) ? changedKinds[message.method] : undefined;
  if (kinds !== undefined) {
    options.listChanged(kinds);
    return;
  }
  switch (message.method) {
    case 'notifications/progress':
      passProgress(message, options);
      return;
    case 'notifications/message':
      passLog(message, exchange, options);
      return;
    case 'notifications/resources/updated': {
      const uri = textOf(message.bytes, find(message.params, 'uri'));
      if (uri !== undefined) options.resourceUpdated(uri);
      return;
    }
    case 'notifications/tasks': {
      const notice = taskNoticeOf(message);
      if (notice === undefined) options.dropped(message.method);
      else options.taskChanged(notice);
      return;
    }
    case 'notifications/subscriptions/acknowledged':
      watchOf(message, find(message.params, '_meta')?.members, metaKey.subscription, options)?.opened();
      return;
    case 'notifications/cancelled':
      watchOf(message, message.params, 'requestId', options)?.ended();
      return;
    default:
      passVendor(message, exchange, options);
  }
}

/** What nobody knows goes to the caller on whose stream it came, or of the only call that is open, never by guess. */
function passVendor(message: Notification, onStream: CallExchange | undefined, options: InboxOptions): void {
  const exchange = onStream ?? options.onlyExchange();
  if (exchange?.isWaiting !== true || !isVendorNotification(message.method)) {
    options.dropped(message.method);
    return;
  }
  exchange.call.notify(message.bytes);
  options.passed(message.method);
}

function watchOf(
  message: Notification,
  members: Members | undefined,
  key: string,
  options: InboxOptions,
): { opened(): void; ended(): void } | undefined {
  const member = find(members, key);
  const id = member === undefined ? undefined : numericId(message.bytes, member);
  return id === undefined ? undefined : options.watch(id);
}

/** The token says whose it is; the caller's own stands in its place, with its type. */
function passProgress(message: Notification, options: InboxOptions): void {
  const token = find(message.params, 'progressToken');
  const id = token === undefined ? undefined : numericId(message.bytes, token);
  const exchange = id === undefined ? undefined : options.exchange(id);
  const own = find(exchange?.call.request.meta, metaKey.progressToken);
  if (exchange === undefined || token === undefined || own === undefined) {
    options.dropped(message.method);
    return;
  }
  const { call } = exchange;
  const bytes = call.request.bytes.subarray(own.start, own.end);
  call.deadline?.renew();
  if (!exchange.isWaiting) {
    options.dropped(message.method);
    return;
  }
  call.notify(splice(message.bytes, [{ start: token.start, end: token.end, bytes }]));
  options.passed(message.method);
}

/**
 * Log lines reach a caller who asked for them, on the stream of its call; on a shared channel only where one call is open, never by guess.
 * Where all calls are one caller's, any that wants the line will do, and without one it belongs to none.
 */
function passLog(message: Notification, onStream: CallExchange | undefined, options: InboxOptions): void {
  const level = String(jsonOf(message.bytes, find(message.params, 'level')));
  const isWanted = ({ call: { request }, isWaiting }: CallExchange): boolean => {
    const wanted = textOf(request.bytes, find(request.meta, metaKey.logLevel));
    return isWaiting && wanted !== undefined && isLogged(level, wanted);
  };
  const own = onStream === undefined ? options.ownCalls?.() : undefined;
  const exchange = own === undefined ? (onStream ?? options.onlyExchange()) : own.find(isWanted);
  if (own !== undefined && exchange === undefined) {
    options.logged?.(level, message.bytes);
    return;
  }
  if (exchange === undefined || !isWanted(exchange)) {
    options.dropped(message.method);
    return;
  }
  exchange.call.notify(message.bytes);
  options.passed(message.method);
}
