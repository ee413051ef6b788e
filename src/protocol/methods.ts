/** The one table of methods: how each is routed, mirrored into headers and cached. */

export type ListKind = 'tools' | 'prompts' | 'resources' | 'templates';

export interface Method {
  /** Which member of `params` Mcp-Name mirrors (Streamable HTTP, "Standard Request Headers"). */
  readonly nameParam: 'name' | 'uri' | 'taskId' | undefined;
  readonly route: 'discover' | 'list' | 'tool' | 'prompt' | 'resource' | 'completion' | 'listen' | 'task';
  readonly list?: ListKind;
}

const table: Readonly<Record<string, Method>> = {
  'server/discover': { nameParam: undefined, route: 'discover' },
  'tools/list': { nameParam: undefined, route: 'list', list: 'tools' },
  'prompts/list': { nameParam: undefined, route: 'list', list: 'prompts' },
  'resources/list': { nameParam: undefined, route: 'list', list: 'resources' },
  'resources/templates/list': { nameParam: undefined, route: 'list', list: 'templates' },
  'tools/call': { nameParam: 'name', route: 'tool' },
  'prompts/get': { nameParam: 'name', route: 'prompt' },
  'resources/read': { nameParam: 'uri', route: 'resource' },
  'completion/complete': { nameParam: undefined, route: 'completion' },
  'subscriptions/listen': { nameParam: undefined, route: 'listen' },
  'tasks/get': { nameParam: 'taskId', route: 'task' },
  'tasks/update': { nameParam: 'taskId', route: 'task' },
  'tasks/cancel': { nameParam: 'taskId', route: 'task' },
};

export const methodOf = (name: string): Method | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

export const methodNames: readonly string[] = Object.keys(table);

/** What one kind of list is called on the wire. */
export const lists: Readonly<
  Record<ListKind, { readonly method: string; readonly key: string; readonly capability: string }>
> = {
  tools: { method: 'tools/list', key: 'tools', capability: 'tools' },
  prompts: { method: 'prompts/list', key: 'prompts', capability: 'prompts' },
  resources: { method: 'resources/list', key: 'resources', capability: 'resources' },
  templates: { method: 'resources/templates/list', key: 'resourceTemplates', capability: 'resources' },
};

export const listKinds: readonly ListKind[] = ['tools', 'prompts', 'resources', 'templates'];

/** Requests that no client makes of a server of 2026-07-28, though some revision has them: nobody is asked what they mean. */
const foreign: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'roots/list',
  'sampling/createMessage',
  'elicitation/create',
  'tasks/list',
  'tasks/result',
]);

/** Whether a request is of no revision and no extension that the gateway knows, so that only a server can tell what it means. */
export const isVendorMethod = (name: string): boolean =>
  methodOf(name) === undefined && !foreign.has(name) && !name.startsWith('notifications/');

const notifications: ReadonlySet<string> = new Set([
  'notifications/cancelled',
  'notifications/elicitation/complete',
  'notifications/initialized',
  'notifications/message',
  'notifications/progress',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
  'notifications/roots/list_changed',
  'notifications/subscriptions/acknowledged',
  'notifications/tasks',
  'notifications/tasks/status',
  'notifications/tools/list_changed',
]);

/** The same of a notification, of either side. */
export const isVendorNotification = (name: string): boolean =>
  !notifications.has(name) && methodOf(name) === undefined && !foreign.has(name);
