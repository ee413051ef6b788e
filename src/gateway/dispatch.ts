/** The innermost handler: answers what the gateway can itself, sends the rest to the upstream whose name it is. */
import type { Catalog, Found, Resolved } from '../catalog/catalog.ts';
import type { Call, Reply } from '../protocol/call.ts';
import { code, RpcError } from '../protocol/errors.ts';
import { find, type Member, textOf } from '../protocol/json.ts';
import { paramOf } from '../protocol/message.ts';
import { isVendorMethod, methodOf } from '../protocol/methods.ts';
import type { TaskIds } from '../upstream/task-ids.ts';
import { type DiscoverOptions, discoverReply } from './discover.ts';
import { attempt, type ForwardOptions, forward } from './forward.ts';
import type { Handler } from './layers.ts';
import type { Listeners } from './listen.ts';
import { type ListingOptions, listReply } from './listing.ts';
import { taskOf } from './task.ts';
import { toldBy } from './told.ts';
import { waited } from './waited.ts';

export interface DispatchOptions extends ForwardOptions {
  readonly listing: ListingOptions;
  readonly discover: DiscoverOptions;
  readonly listeners: Listeners;
  readonly taskIds: TaskIds;
}

const shown = (value: string): string => (value.length > 200 ? `${value.slice(0, 200)}…` : value);

const wanted = (call: Call, key: string): { member: Member; value: string } => {
  const member = paramOf(call.request, key);
  const value = textOf(call.request.bytes, member);
  if (member === undefined || value === undefined)
    throw new RpcError(code.invalidParams, `Invalid params: "${key}" must be a string`);
  return { member, value };
};

export function dispatch(options: DispatchOptions): Handler {
  return (call) => attempt(() => route(call, options));
}

function route(call: Call, options: DispatchOptions): Promise<Reply> {
  const method = methodOf(call.request.method);
  if (method === undefined) return vendor(call, options);
  switch (method.route) {
    case 'discover':
      return discoverReply(call, options.discover);
    case 'list':
      return listReply(call, method.list ?? 'tools', options.listing);
    case 'listen':
      return options.listeners.listen(call);
    case 'tool':
    case 'prompt':
      return named(call, method.route, options);
    case 'resource':
      return resource(call, options);
    case 'completion':
      return complete(call, options);
    case 'task': {
      const { found, member } = taskOf(call, options);
      return forward(call, found, member, options);
    }
    default:
      throw method.route satisfies never;
  }
}

/** What only a server can know, for the one that is meant. */
async function vendor(call: Call, options: DispatchOptions): Promise<Reply> {
  const { method } = call.request;
  const told = isVendorMethod(method)
    ? await waited(call, options.nowMs, toldBy(call.request, call.caller, options))
    : undefined;
  if (told === undefined)
    throw new RpcError(code.methodNotFound, `Method not found: ${shown(method)}`, { status: 404 });
  return forward(call, told.found, told.member, options);
}

/** A name that is known goes on at once; only one that is not may have to wait for servers that are starting. */
function named(call: Call, what: 'tool' | 'prompt', options: DispatchOptions): Promise<Reply> {
  const catalog = options.catalogs.of(call.caller);
  const { member, value } = wanted(call, 'name');
  const kind = what === 'tool' ? 'tools' : 'prompts';
  const send = (resolved: Resolved): Promise<Reply> => {
    const found = known(resolved, what, value, catalog);
    call.known =
      what === 'tool'
        ? { tool: found.entry?.publicKey ?? value, output: found.entry?.output ?? 'undeclared' }
        : { prompt: value };
    return forward(call, found, member, options);
  };
  const at = catalog.find(kind, value);
  return at === undefined ? waited(call, options.nowMs, catalog.resolve(kind, value)).then(send) : send(at);
}

async function resource(call: Call, options: DispatchOptions): Promise<Reply> {
  const { nowMs } = options;
  const catalog = options.catalogs.of(call.caller);
  const { member, value } = wanted(call, 'uri');
  const found = known(await waited(call, nowMs, catalog.resolveUri(value)), 'resource', value, catalog);
  return forward(call, found, member, options);
}

/** What was found, or the error that says what is unknown; where a server that may have it is down, that too. */
function known(
  resolved: Resolved,
  what: 'tool' | 'prompt' | 'resource',
  name: string,
  catalog: Catalog,
): Found {
  if (resolved.kind === 'found') return resolved;
  const absent = catalog.members.filter(({ upstream }) => upstream.profile === undefined);
  const owner =
    absent.find(({ server: { prefix } }) => prefix !== '' && name.startsWith(prefix)) ??
    absent.find(({ server, refusal }) => refusal !== undefined && server.prefix === '');
  if (owner?.refusal !== undefined) throw owner.refusal;
  const hint = owner === undefined ? '' : ` (server \`${owner.server.name}\` is not up)`;
  const text = what === 'resource' ? 'Resource not found' : `Unknown ${what}`;
  throw new RpcError(code.invalidParams, `${text}: ${shown(name)}${hint}`, {
    ...(what === 'resource' ? { data: { uri: name } } : {}),
  });
}

async function complete(call: Call, options: DispatchOptions): Promise<Reply> {
  const { nowMs } = options;
  const catalog = options.catalogs.of(call.caller);
  const ref = paramOf(call.request, 'ref');
  const name = find(ref?.members, 'name');
  const uri = find(ref?.members, 'uri');
  const { bytes } = call.request;
  const nameText = textOf(bytes, name);
  if (nameText !== undefined)
    return forward(
      call,
      known(await waited(call, nowMs, catalog.resolve('prompts', nameText)), 'prompt', nameText, catalog),
      name,
      options,
    );
  const uriText = textOf(bytes, uri);
  if (uriText === undefined)
    throw new RpcError(code.invalidParams, 'Invalid params: "ref" must name a prompt or a resource');
  const found = known(
    await waited(call, nowMs, catalog.resolveTemplate(uriText)),
    'resource',
    uriText,
    catalog,
  );
  return forward(call, found, uri, options);
}
