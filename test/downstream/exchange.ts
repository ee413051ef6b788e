/** One HTTP request of a test and all that came back. */
import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, type RequestOptions, request } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { buffer } from 'node:stream/consumers';

export interface Got {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends it on a connection of its own; `headers` may be names and values in turn, to send one twice. */
export async function exchange(
  url: string,
  options: RequestOptions & { readonly ca?: string; readonly servername?: string } = {},
  body = '',
): Promise<Got> {
  const send = url.startsWith('https:') ? tlsRequest : request;
  const sent = send(url, { agent: false, ...options });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return {
    status: response.statusCode,
    headers: response.headers,
    body: (await buffer(response)).toString(),
  };
}
