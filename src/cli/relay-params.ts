/** Which arguments of a gateway's tools are mirrored into headers, as far as a relay had to learn it (2026-07-28, "Custom Headers"). */
import { jsonOf } from '../protocol/json.ts';
import { metaKey, paramOf, type RequestMessage } from '../protocol/message.ts';
import { outgoingParamHeaders, type ParamHeader, paramHeadersOf } from '../protocol/param-headers.ts';
import { isRecord, type Json } from './post.ts';

/** Asks the gateway something of the relay's own; undefined where there is no result. */
export type Ask = (method: string, params: Json) => Promise<Json | undefined>;

const pagesMax = 1_000;
const toolsMax = 10_000;

export class RelayParams {
  readonly #tools = new Map<string, readonly ParamHeader[]>();

  /** Header names and values in turn, for a call of a tool. */
  headersOf(request: RequestMessage): readonly string[] {
    if (request.method !== 'tools/call') return [];
    const name = jsonOf(request.bytes, paramOf(request, 'name'));
    const defined = typeof name === 'string' ? this.#tools.get(name) : undefined;
    if (defined === undefined) return [];
    const args = jsonOf(request.bytes, paramOf(request, 'arguments'));
    return outgoingParamHeaders(defined, new Map(), args);
  }

  /** Learns it anew from the list of tools, asked for with the `_meta` of this request. */
  async learn(request: RequestMessage, ask: Ask): Promise<void> {
    const meta = jsonOf(request.bytes, paramOf(request, '_meta'));
    const _meta = Object.fromEntries(
      [metaKey.version, metaKey.clientInfo, metaKey.capabilities].flatMap((key) =>
        isRecord(meta) && key in meta ? [[key, meta[key]]] : [],
      ),
    );
    this.#tools.clear();
    let cursor: unknown;
    for (let page = 0; page < pagesMax; page++) {
      const result = await ask('tools/list', { _meta, ...(cursor === undefined ? {} : { cursor }) });
      const tools: readonly unknown[] = Array.isArray(result?.['tools']) ? result['tools'] : [];
      for (const tool of tools) this.#keep(tool);
      cursor = result?.['nextCursor'];
      if (cursor === undefined) return;
    }
  }

  #keep(tool: unknown): void {
    if (!isRecord(tool) || typeof tool['name'] !== 'string' || this.#tools.size >= toolsMax) return;
    const found = paramHeadersOf(tool['inputSchema']);
    if (found.kind === 'valid' && found.headers.length > 0) this.#tools.set(tool['name'], found.headers);
  }
}
