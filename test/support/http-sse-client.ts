/** A client of HTTP+SSE (2024-11-05) on node:http alone, as a channel that carries a message a line. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { PassThrough, Writable } from 'node:stream';
import { type ChannelClient, channelClient } from './channel-client.ts';

export interface HttpSseClient {
  readonly client: ChannelClient;
  /** The head of the stream, and where it said that messages go. */
  readonly response: IncomingMessage;
  readonly endpoint: string;
  /** The HTTP status of each POST so far. */
  readonly statuses: readonly number[];
  /** Posts anything to a URL and resolves with the status and the body. */
  post(url: string, body: string, headers?: object): Promise<{ status: number; body: string }>;
  close(): void;
}

function post(url: string, body: string, headers: object = {}): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method: 'POST', agent: false, headers: { 'content-type': 'application/json', ...headers } },
      (response) => {
        response.toArray().then(
          (chunks) =>
            resolve({
              status: response.statusCode ?? 0,
              body: Buffer.concat(chunks as Buffer[]).toString(),
            }),
          reject,
        );
      },
    );
    sent.on('error', reject).end(body);
  });
}

/** Tells each event of a stream, whose lines end in LF. */
function readEvents(incoming: IncomingMessage, tell: (type: string, data: string) => void): void {
  let pieces: string[] = [];
  incoming.setEncoding('utf8').on('data', (chunk: string) => {
    pieces.push(chunk);
    // An event of megabytes is joined once, when its end may be there.
    if (!chunk.includes('\n')) return;
    const frames = pieces.join('').split('\n\n');
    pieces = [frames.pop() ?? ''];
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (data !== undefined) tell(/^event: (.*)$/m.exec(frame)?.[1] ?? '', data);
    }
  });
  incoming.on('error', () => undefined);
}

/** Opens the stream and resolves once the server has said where messages go. */
export async function httpSseClient(url: string, headers: object = {}): Promise<HttpSseClient> {
  const statuses: number[] = [];
  const output = new PassThrough();
  let sent: ClientRequest | undefined;
  const { response, endpoint } = await new Promise<{ response: IncomingMessage; endpoint: string }>(
    (resolve, reject) => {
      sent = request(url, { agent: false, headers: { accept: 'text/event-stream', ...headers } });
      sent.on('error', reject);
      sent.on('response', (incoming) => {
        if (incoming.statusCode !== 200) reject(new Error(`HTTP ${incoming.statusCode}`));
        readEvents(incoming, (type, data) => {
          if (type === 'endpoint') resolve({ response: incoming, endpoint: data });
          else output.write(`${data}\n`);
        });
      });
      sent.end();
    },
  );
  const target = new URL(endpoint, url).href;
  const input = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      post(target, line.trimEnd(), headers).then(({ status }) => {
        statuses.push(status);
        done();
      }, done);
    },
  });
  return {
    client: channelClient(input, output),
    response,
    endpoint,
    statuses,
    post: (to, body, more = {}) => post(new URL(to, url).href, body, { ...headers, ...more }),
    close: () => sent?.destroy(),
  };
}
