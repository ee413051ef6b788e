/** The splicer, alone and in what is sent to upstreams, against the same done to strings and to parsed JSON. */
import { find } from '../../src/protocol/json.ts';
import { paramOf, type RequestMessage, scanInbound } from '../../src/protocol/message.ts';
import { cut, type Edit, onOneLine, splice } from '../../src/protocol/splice.ts';
import { legacyBody, modernBody, type Target as Outgoing } from '../../src/upstream/outgoing.ts';
import { jsonTree, textOf } from './json-target.ts';
import { answers, gatewayId, requests } from './messages.ts';
import { mutated, mutatedText, subjectsOf } from './mutations.ts';
import type { Tape } from './tape.ts';
import { Disagreement, must, mustEqual, type Target } from './target.ts';

const everything = subjectsOf([...requests, ...answers]);
const inbound = subjectsOf(requests);
const options = { strict: true, depthMax: 32 };

function checkSplice(tape: Tape): void {
  const bytes = mutated(everything, tape);
  const places = Array.from({ length: 2 * tape.below(5) }, () => tape.below(bytes.length + 1)).sort(
    (a, b) => a - b,
  );
  const edits: Edit[] = [];
  let wanted = '';
  let from = 0;
  for (let i = 0; i < places.length; i += 2) {
    const [start = 0, end = 0] = [places[i], places[i + 1]];
    const put = tape.pick([undefined, '', 'x', '"🎉"', '1000000001']);
    edits.push({ start, end, bytes: put === undefined ? undefined : Buffer.from(put) });
    wanted += bytes.toString('latin1', from, start) + Buffer.from(put ?? '').toString('latin1');
    from = end;
  }
  wanted += bytes.toString('latin1', from);
  const isEmpty = edits.some(({ start, end }) => start === end);
  // Two that insert at one place have no order but the one they came in.
  if (!isEmpty && tape.below(2) === 1) edits.reverse();
  const before = Buffer.from(bytes);
  mustEqual(splice(bytes, edits).toString('latin1'), wanted, 'splice', [bytes, edits]);
  mustEqual(Buffer.concat(cut(bytes, edits)).toString('latin1'), wanted, 'cut', [bytes, edits]);
  must(bytes.equals(before), 'the source was changed', [bytes, edits]);
  checkLine(bytes);
}

function checkLine(bytes: Buffer): void {
  const line = onOneLine(bytes);
  must(!line.includes(0x0a) && !line.includes(0x0d), 'a line end in one line', bytes);
  mustEqual(line.toString('latin1'), bytes.toString('latin1').replace(/[\r\n]/g, ' '), 'on one line', bytes);
  const text = textOf(bytes);
  if (jsonTree(text) !== undefined)
    mustEqual(JSON.parse(line.toString()), JSON.parse(text ?? ''), 'the same on one line', bytes);
}

type Json = Record<string, unknown>;
const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** As dispatch finds it. */
function targetOf(request: RequestMessage, name: string | undefined): Outgoing {
  const key = request.method === 'resources/read' ? 'uri' : 'name';
  const members =
    request.method === 'completion/complete' ? paramOf(request, 'ref')?.members : request.params?.members;
  return { member: find(members, key), name, paramHeaders: [] };
}

/** The parsed request as an upstream of 2026-07-28 must see it. */
function wantedBody(text: string, name: string | undefined): Json {
  const value = JSON.parse(text) as Json;
  value['id'] = gatewayId;
  const { params, method } = value;
  if (!isRecord(params)) return value;
  const place = method === 'completion/complete' ? params['ref'] : params;
  const key = method === 'resources/read' ? 'uri' : 'name';
  if (name !== undefined && isRecord(place) && Object.hasOwn(place, key)) place[key] = name;
  const meta = params['_meta'];
  if (isRecord(meta) && Object.hasOwn(meta, 'progressToken')) meta['progressToken'] = gatewayId;
  return value;
}

/** The same for a legacy one. */
function wantedLegacy(text: string, name: string | undefined): Json {
  const value = wantedBody(text, name);
  const { params } = value;
  if (!isRecord(params)) return value;
  delete params['inputResponses'];
  delete params['requestState'];
  const meta = params['_meta'];
  if (isRecord(meta))
    for (const key of Object.keys(meta)) if (key.startsWith('io.modelcontextprotocol/')) delete meta[key];
  return value;
}

function checkOutgoing(tape: Tape): void {
  const bytes = Buffer.from(mutatedText(inbound, tape));
  const text = bytes.toString();
  const found = scanInbound(bytes, options);
  if (found.kind !== 'request') return;
  const name = tape.pick([undefined, 'x', 'read_file', 'ä"\\\n🎉']);
  const { request } = found;
  let sent: readonly Buffer[];
  try {
    const target = targetOf(request, name);
    sent = [modernBody(request, gatewayId, target), legacyBody(request, gatewayId, target, options)];
  } catch (error) {
    throw new Disagreement(`a crash: ${(error as Error).stack}`, bytes);
  }
  const [modern, legacy] = sent.map((body) => JSON.parse(body.toString()) as Json);
  mustEqual(modern, wantedBody(text, name), 'the body for a modern upstream', bytes);
  mustEqual(legacy, wantedLegacy(text, name), 'the body for a legacy upstream', bytes);
}

export const splicer: Target = { name: 'splicer', weight: 7, check: checkSplice };
export const outgoing: Target = { name: 'outgoing requests', weight: 6, check: checkOutgoing };
