/** What a session's requests get into `_meta`, and how they get it without being read again. */
import { LRUCache } from 'lru-cache';
import { type Members, membersMax, moved, type ScanOptions } from '../protocol/json.ts';
import { type RequestMessage, scanInbound } from '../protocol/message.ts';

interface Tail {
  /** The member as it follows others, with its comma. */
  readonly bytes: Buffer;
  /** Where its own members stand in those bytes. */
  readonly members: Members;
}

const metasMax = 1_000;
const before = '{"jsonrpc":"2.0","id":0,"method":"","params":{"":0';
const after = '}}';

export class SessionMeta {
  /** The members, without braces. */
  readonly text: string;
  /** Undefined where it was not made yet; null where the members can't be read, which whoever reads the whole request is told. */
  #tail: Tail | null | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** The request with them as the last member of its params; undefined where they can't simply be put there. */
  appendedTo({ bytes, method, id, params }: RequestMessage, scan: ScanOptions): RequestMessage | undefined {
    const { members } = params ?? {};
    if (params === undefined || members === undefined || id.start > params.start) return undefined;
    if (members.length === 0 || members.length >= membersMax) return undefined;
    for (const { key } of members) if (key === '_meta') return undefined;
    this.#tail ??= this.#read(scan);
    if (this.#tail === null) return undefined;
    const { bytes: tail, members: own } = this.#tail;
    const at = params.end - 1;
    const out = Buffer.allocUnsafe(bytes.length + tail.length);
    bytes.copy(out, 0, 0, at);
    tail.copy(out, at);
    bytes.copy(out, at + tail.length, at);
    const meta = own.map((member) => moved(member, at));
    const start = at + ',"_meta":'.length;
    const end = at + tail.length;
    const last = { key: '_meta', isKnown: true, keyStart: at + 1, start, end, members: meta };
    const whole = { ...params, end: params.end + tail.length, members: [...members, last] };
    return { bytes: out, method, id, params: whole, meta };
  }

  #read(scan: ScanOptions): Tail | null {
    const text = `,"_meta":{${this.text}}`;
    const inbound = scanInbound(Buffer.from(before + text + after), scan);
    if (inbound.kind !== 'request' || inbound.request.meta === undefined) return null;
    const members = inbound.request.meta.map((member) => moved(member, -before.length));
    // Not from the pool, of which it would keep 8 KiB for as long as the session is remembered.
    const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
    bytes.write(text);
    return { bytes, members };
  }
}

/** Clients that say the same of themselves share one, since thousands of sessions are remembered. */
export class SessionMetas {
  readonly #known = new LRUCache<string, SessionMeta>({ max: metasMax });

  of(text: string): SessionMeta {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const meta = new SessionMeta(text);
    this.#known.set(text, meta);
    return meta;
  }
}
