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
