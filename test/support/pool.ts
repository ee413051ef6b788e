/** Clients that call one tool over and over on kept-alive connections, and what came of each call. */
import { Agent, request } from 'node:http';
import { type Message, requestText } from './modern-client.ts';

export interface PoolOptions {
  readonly clients: number;
  readonly tool: string;
  /** Beside `tag`, which is another for each call. */
  readonly args?: Readonly<Record<string, unknown>>;
}

/** A call that was not answered with a result; `tag` is what it was called with. */
interface Failed {
  readonly tag: string;
  readonly why: string;
}

export interface Pool {
  readonly failed: readonly Failed[];
  /** How many calls were answered with a result. */
  readonly done: number;
  /** Resolves when so many more calls were answered; an error after 30 s. */
  more(count: number): Promise<void>;
  /** Ends it after the calls that are open. */
  stop(): Promise<void>;
}

const moreMs = 30_000;

/** What came back for one call, in a word where it is no result. */
function send(url: string, agent: Agent, tool: string, args: object): Promise<string | undefined> {
  return new Promise((resolve) => {
    const sent = request(url, {
      method: 'POST',
      agent,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': tool,
      },
    });
    sent.on('response', (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', (error) => resolve(`broken: ${error.message}`));
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve(isResult(text) ? undefined : `HTTP ${incoming.statusCode}: ${text.slice(0, 300)}`);
      });
    });
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    sent.end(requestText('tools/call', { name: tool, arguments: args }));
  });
}

function isResult(text: string): boolean {
  try {
    return (JSON.parse(text) as Message).result !== undefined;
  } catch {
    return false;
  }
}

/** Starts the clients, each of which sends its next call when it has the answer of the last; one whose call failed waits a moment. */
export function startPool(url: string, { clients, tool, args = {} }: PoolOptions): Pool {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const failed: Failed[] = [];
  let done = 0;
  let isOver = false;
  const run = async (client: number): Promise<void> => {
    for (let count = 0; !isOver; count++) {
      const tag = `${client}.${count}`;
      const why = await send(url, agent, tool, { ...args, tag });
      if (why === undefined) done++;
      else {
        failed.push({ tag, why });
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  const running = Promise.all(Array.from({ length: clients }, (_, client) => run(client)));
  return {
    failed,
    get done() {
      return done;
    },
    async more(count) {
      const wanted = done + count;
      const untilMs = performance.now() + moreMs;
      while (done < wanted) {
        if (performance.now() > untilMs)
          throw new Error(`only ${count - (wanted - done)} of ${count} calls, and ${failed.length} failed`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    async stop() {
      isOver = true;
      await running;
      agent.destroy();
    },
  };
}
