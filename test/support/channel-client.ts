/** A client on one channel that carries everything, a message a line: writes what a test says and keeps what came back. */
import type { Readable, Writable } from 'node:stream';
import type { Message } from './modern-client.ts';

/** A request of revision 2026-07-28 has these in `_meta`. */
export const modernMeta = (capabilities: object = {}) => ({
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'raw-channel', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': capabilities,
});

export interface ChannelClient {
  /** Every line so far, as it came. */
  readonly lines: readonly string[];
  /** The same as messages; a line that is no JSON is an error. */
  messages(): readonly (Message | readonly Message[])[];
  send(message: object | string): void;
  /** The first message that fits, waited for up to 30 s, or as long as is said; none is taken away. */
  until(fits: (message: Message) => boolean, ms?: number): Promise<Message>;
  /** Sends a request and waits for its response. */
  request(id: string | number, method: string, params?: object, ms?: number): Promise<Message>;
  /** Sends `initialize`, waits for its answer and says that it is initialized. */
  initialize(version?: string, capabilities?: object): Promise<Message>;
  /** Sends a request of 2026-07-28 and waits for its response. */
  modern(id: string | number, method: string, params?: object, meta?: object): Promise<Message>;
}

const waitMs = 30_000;

/** Reads and writes lines until the streams end. */
export function channelClient(input: Writable, output: Readable): ChannelClient {
  const lines: string[] = [];
  let pieces: string[] = [];
  const waiting = new Set<() => void>();
  output.setEncoding('utf8').on('data', (text: string) => {
    pieces.push(text);
    if (!text.includes('\n')) return;
    const parts = pieces.join('').split('\n');
    pieces = [parts.pop() ?? ''];
    lines.push(...parts);
    for (const wake of waiting) wake();
  });
  const messages = (): (Message | Message[])[] =>
    lines.map((line) => JSON.parse(line) as Message | Message[]);
  const until = async (fits: (message: Message) => boolean, ms = waitMs): Promise<Message> => {
    const deadline = Date.now() + ms;
    for (;;) {
      const found = messages().flat().find(fits);
      if (found !== undefined) return found;
      const leftMs = deadline - Date.now();
      if (leftMs <= 0) throw new Error(`no such message within ${ms} ms: ${fits}, but ${lines.join('\n')}`);
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          waiting.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, leftMs);
        waiting.add(wake);
      });
    }
  };
  const send = (message: object | string): void => {
    input.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`);
  };
  const request = (
    id: string | number,
    method: string,
    params: object = {},
    ms = waitMs,
  ): Promise<Message> => {
    send({ jsonrpc: '2.0', id, method, params });
    return until((message) => message.id === id && message.method === undefined, ms);
  };
  return {
    lines,
    messages,
    send,
    until,
    request,
    async initialize(version = '2025-11-25', capabilities = {}) {
      const clientInfo = { name: 'raw-channel', version: '1.0.0' };
      const answer = await request('begin', 'initialize', {
        protocolVersion: version,
        capabilities,
        clientInfo,
      });
      send({ jsonrpc: '2.0', method: 'notifications/initialized' });
      return answer;
    },
    modern: (id, method, params = {}, meta = modernMeta()) => request(id, method, { ...params, _meta: meta }),
  };
}
