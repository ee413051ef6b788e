/** Clients of each era and transport that can be told to do the same, each in front of a gateway of its own. */
import { modernMeta } from './channel-client.ts';
import { startChannelGateway } from './channel-gateway.ts';
import { startGateway } from './gateway.ts';
import { type Message, openCall } from './modern-client.ts';
import { startRotating } from './rotating.ts';
import { createSseReader } from './sse.ts';

type Params = Readonly<Record<string, unknown>>;

/** What came for one request. */
export interface Exchanged {
  readonly response: Message;
  /** Progress and log lines. */
  readonly notifications: readonly Message[];
  /** What it was asked, in order; with ids where they came as requests. */
  readonly questions: readonly Message[];
}

/** What a client answers to a question: a result, or an error where it is one. */
export type Answerer = (question: Message) => object;

interface Stream {
  /** The next message, waited for. */
  next(): Promise<Message>;
  close(): void;
}

interface OpenRequest extends Stream {
  /** The next message, but for those of a channel that belong to no request. */
  next(): Promise<Message>;
  /** Takes the request back, in the way of this client. */
  cancel(): Promise<void>;
  /** Waits for the answer, past all that comes before it. */
  end(): Promise<void>;
}

export interface PairClient {
  /** Sends a request, answers what it is asked meanwhile, and resolves with its end. */
  run(method: string, params?: object, answer?: Answerer): Promise<Exchanged>;
  /** The result of a request that asks nothing; an error where it has none. */
  result(method: string, params?: object): Promise<Params>;
  /** Calls a tool of the server `up`. */
  call(tool: string, args?: object, answer?: Answerer, meta?: object): Promise<Exchanged>;
  open(method: string, params: object): Promise<OpenRequest>;
  /** From now on log lines of this level and above come with calls. */
  setLevel(level: string): Promise<void>;
  /** Notices of all lists and of these resources. */
  hear(uris?: readonly string[]): Promise<Stream>;
}

export interface PairGateway {
  /** Another client of this kind in front of the same gateway; on a channel that is always the same client. */
  connect(capabilities?: object): Promise<PairClient>;
  stop(): Promise<void>;
}

export interface ClientKind {
  readonly name: string;
  readonly version: string;
  readonly transport: 'http' | 'stdio';
  /** How many it is in front of, each of which gets one request after the other. */
  readonly processes: number;
  /** `owned` where the gateway's children are run by another process, as far as that can be. */
  start(config: object, owned?: boolean): Promise<PairGateway>;
}

/** How messages travel. */
interface Wire {
  send(message: object): Promise<Stream>;
  /** What belongs to no request. */
  listen(): Promise<Stream>;
  readonly isModern: boolean;
  readonly isHttp: boolean;
}

/** All that a client may be asked. */
export const everyCapability = { sampling: {}, roots: {}, elicitation: { form: {}, url: {} } };

const levelKey = 'io.modelcontextprotocol/logLevel';
const isOfCall = ({ method }: Message): boolean =>
  method === 'notifications/progress' || method === 'notifications/message';
const isOfStream = ({ method = '' }: Message): boolean =>
  /list_changed$|resources\/updated$|acknowledged$/.test(method);

interface Asking {
  readonly result?: {
    readonly inputRequests?: Readonly<Record<string, Message>>;
    readonly requestState?: unknown;
  };
}

const bodyOf = (said: object): object =>
  said instanceof Error ? { error: { code: -1, message: said.message } } : { result: said };

/** A client on a wire: what it says is of one era, what it is told to do is not. */
function clientOn(wire: Wire, capabilities: object): PairClient {
  let lastId = 100;
  let level: string | undefined;
  const requestOf = (id: number, method: string, params: object): object => {
    const { _meta, ...rest } = params as { _meta?: object };
    const levelled = level === undefined ? {} : { [levelKey]: level };
    const meta = wire.isModern ? { ...modernMeta(capabilities), ...levelled, ..._meta } : _meta;
    return { jsonrpc: '2.0', id, method, params: meta === undefined ? rest : { ...rest, _meta: meta } };
  };
  const round = async (
    method: string,
    params: object,
    answer: Answerer,
    seen: Message[],
  ): Promise<Message> => {
    const id = lastId++;
    const stream = await wire.send(requestOf(id, method, params));
    for (;;) {
      const message = await stream.next();
      if (message.method === undefined && message.id === id) return message;
      if (message.method === undefined || isOfStream(message)) continue;
      seen.push(message);
      if (message.id === undefined) continue;
      await wire.send({ jsonrpc: '2.0', id: message.id, ...bodyOf(answer(message)) });
    }
  };
  const noAnswer: Answerer = ({ method }) => new Error(`nobody expected ${method}`);
  const run = async (method: string, params: object = {}, answer = noAnswer): Promise<Exchanged> => {
    const seen: Message[] = [];
    let response = await round(method, params, answer, seen);
    for (;;) {
      const { inputRequests, requestState } = (response as Asking).result ?? {};
      if (inputRequests === undefined) break;
      const inputResponses = Object.fromEntries(
        Object.entries(inputRequests).map(([key, question]) => {
          seen.push(question);
          return [key, answer(question)];
        }),
      );
      response = await round(method, { ...params, inputResponses, requestState }, answer, seen);
    }
    const notifications = seen.filter(isOfCall);
    return { response, notifications, questions: seen.filter((message) => !isOfCall(message)) };
  };
  const result = async (method: string, params: object = {}): Promise<Params> => {
    const { response } = await run(method, params);
    if (response.result === undefined) throw new Error(`${method}: ${JSON.stringify(response.error)}`);
    return response.result;
  };
  return {
    run,
    result,
    call: (tool, args = {}, answer = noAnswer, _meta = undefined) => {
      const params = { name: `up__${tool}`, arguments: args };
      return run('tools/call', _meta === undefined ? params : { ...params, _meta }, answer);
    },
    open: async (method, params) => {
      const id = lastId++;
      const stream = await wire.send(requestOf(id, method, params));
      const cancel = async (): Promise<void> => {
        if (wire.isModern && wire.isHttp) stream.close();
        else
          await wire.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
      };
      const next = async (): Promise<Message> => {
        for (;;) {
          const message = await stream.next();
          if (wire.isHttp || !isOfStream(message)) return message;
        }
      };
      const end = async (): Promise<void> => {
        for (;;) {
          const message = await next();
          if (message.method === undefined && message.id === id) return;
        }
      };
      return { ...stream, next, cancel, end };
    },
    setLevel: async (wanted) => {
      level = wanted;
      if (!wire.isModern) await result('logging/setLevel', { level: wanted });
    },
    hear: async (uris = []) => {
      const notices = (stream: Stream, isOwn: (message: Message) => boolean = () => true): Stream => ({
        close: stream.close,
        next: async () => {
          for (;;) {
            const message = await stream.next();
            if (isOfStream(message) && isOwn(message)) return message;
          }
        },
      });
      if (!wire.isModern) {
        const stream = notices(await wire.listen());
        for (const uri of uris) await result('resources/subscribe', { uri });
        return stream;
      }
      const lists = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
      const notifications = { ...lists, ...(uris.length === 0 ? {} : { resourceSubscriptions: uris }) };
      const id = lastId++;
      const isOwn = ({ params }: Message): boolean =>
        (params?.['_meta'] as Params | undefined)?.['io.modelcontextprotocol/subscriptionId'] === id;
      const sent = await wire.send(requestOf(id, 'subscriptions/listen', { notifications }));
      // One channel carries what earlier listens are told, too.
      const stream = notices(sent, isOwn);
      const { method, params } = await stream.next();
      if (method !== 'notifications/subscriptions/acknowledged')
        throw new Error(`a listen begins with ${method}`);
      if (JSON.stringify(params?.['notifications']) !== JSON.stringify(notifications))
        throw new Error(`a listen is acknowledged with ${JSON.stringify(params)}`);
      return stream;
    },
  };
}

const nothing: Stream = { next: () => Promise.reject(new Error('nothing comes')), close: () => undefined };

const modernWire = (url: string): Wire => ({
  isModern: true,
  isHttp: true,
  send: (message) => {
    const { method, params } = message as { method: string; params: Params };
    return openCall(url, method, params, { body: JSON.stringify(message) });
  },
  listen: () => Promise.resolve(nothing),
});

/** The messages of a stream that a GET opens; its first event is empty. */
async function openGet(url: string, headers: Record<string, string>): Promise<Stream> {
  const ended = new AbortController();
  const { body } = await fetch(url, {
    headers: { ...headers, accept: 'text/event-stream' },
    signal: ended.signal,
  });
  if (body === null) throw new Error('no stream');
  const reader = body.getReader();
  const read = createSseReader();
  const texts: string[] = [];
  return {
    next: async () => {
      for (;;) {
        const text = texts.shift();
        if (text !== undefined && text !== '') return JSON.parse(text) as Message;
        if (text !== undefined) continue;
        const { value, done } = await reader.read();
        if (done) throw new Error('the stream has ended');
        texts.push(...read(Buffer.from(value)));
      }
    },
    close: () => ended.abort(),
  };
}

const unmirrored = { 'mcp-method': undefined, 'mcp-protocol-version': undefined };

const legacyWire = (url: string, headers: Record<string, string>): Wire => ({
  isModern: false,
  isHttp: true,
  send: (message) =>
    openCall(url, '', {}, { body: JSON.stringify(message), headers: { ...unmirrored, ...headers } }),
  listen: () => openGet(url, headers),
});

/** The headers of every request of a new session. */
async function beginSession(
  url: string,
  version: string,
  capabilities: object,
): Promise<Record<string, string>> {
  const clientInfo = { name: 'pair', version: '1' };
  const params = { protocolVersion: version, capabilities, clientInfo };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const opened = await openCall(url, '', {}, { body, headers: unmirrored });
  await opened.done;
  const headers: Record<string, string> = { 'mcp-session-id': String(opened.headers['mcp-session-id']) };
  if (version >= '2025-06-18') headers['mcp-protocol-version'] = version;
  const initialized = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' });
  await openCall(url, '', {}, { body: initialized, headers: { ...unmirrored, ...headers } });
  return headers;
}

/** A client of a gateway that runs; each of its requests is a connection of its own. */
export async function clientOverHttp(
  url: string,
  version: string,
  capabilities: object,
): Promise<PairClient> {
  const wire =
    version === '2026-07-28'
      ? modernWire(url)
      : legacyWire(url, await beginSession(url, version, capabilities));
  return clientOn(wire, capabilities);
}

/** In front of one process, or of several of which each request comes to the next. */
const overHttp = (version: string, processes = 1): ClientKind => ({
  name: `a client of ${version} over HTTP${processes === 1 ? '' : ` in front of ${processes} processes`}`,
  version,
  transport: 'http',
  processes,
  async start(config, owned = false) {
    const gateway = await (processes === 1
      ? startGateway(config, owned ? { owned } : {})
      : startRotating(config, processes, owned));
    const { url } = gateway;
    return {
      connect: (capabilities = everyCapability) => clientOverHttp(url, version, capabilities),
      stop: () => gateway.stop(),
    };
  },
});

const overStdio = (version: string): ClientKind => ({
  name: `a client of ${version} over stdio`,
  version,
  transport: 'stdio',
  processes: 1,
  async start(config) {
    const gateway = await startChannelGateway(config);
    const { client } = gateway;
    const tail = (): Stream => {
      let read = client.messages().flat().length;
      const next = async (): Promise<Message> => {
        await client.until(() => client.messages().flat().length > read);
        return client.messages().flat()[read++] as Message;
      };
      return { next, close: () => undefined };
    };
    const wire: Wire = {
      isModern: version === '2026-07-28',
      isHttp: false,
      send: async (message) => {
        const stream = tail();
        client.send(message);
        return stream;
      },
      listen: async () => tail(),
    };
    return {
      connect: async (capabilities = everyCapability) => {
        if (!wire.isModern) await client.initialize(version, capabilities);
        const connected = clientOn(wire, capabilities);
        // Waits for the servers.
        await connected.result('tools/list');
        return connected;
      },
      stop: () => gateway.stop(),
    };
  },
});

/** One of each era and transport, and the older revisions. */
export const clientKinds: readonly ClientKind[] = [
  overHttp('2026-07-28'),
  overHttp('2025-11-25'),
  overHttp('2025-06-18'),
  overHttp('2025-03-26'),
  overHttp('2026-07-28', 3),
  overHttp('2025-11-25', 3),
  overHttp('2025-03-26', 2),
  overStdio('2026-07-28'),
  overStdio('2025-11-25'),
];

/** Those in front of a gateway whose children another process runs: what differs between revisions does not depend on that. */
export const ownersClientKinds: readonly ClientKind[] = clientKinds.filter(
  ({ version, transport }) => transport === 'http' && (version === '2026-07-28' || version === '2025-11-25'),
);
