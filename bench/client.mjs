/** What is asked before anything is measured: sessions and lists. */
import { setTimeout as sleep } from 'node:timers/promises';
import { clientInfo, headersOf, legacyVersion, messageOf } from './requests.mjs';

const answerMs = 30_000;

function parsed(text, contentType) {
  if (!contentType?.startsWith('text/event-stream')) return text === '' ? undefined : JSON.parse(text);
  const data = text.split('\n').filter((line) => line.startsWith('data:') && line.length > 'data: '.length);
  return data.map((line) => JSON.parse(line.slice('data:'.length))).find(({ id }) => id !== undefined);
}

/** Sends one request of the target's era; resolves with the headers, the text, and the message in it. */
export async function post(target, method, params = {}, id = 1) {
  const response = await fetch(`http://127.0.0.1:${target.port}${target.path}`, {
    method: 'POST',
    headers: headersOf(target, method, params.name),
    body: messageOf(target, id, method, params),
    signal: AbortSignal.timeout(answerMs),
  });
  const text = await response.text();
  if (response.status >= 400) throw new Error(`${target.name}: ${method}: ${response.status} ${text}`);
  return { headers: response.headers, text, message: parsed(text, response.headers.get('content-type')) };
}

/** The target with a session in it, if it is one of the legacy eras. */
export async function opened(target) {
  if (target.isModern) return target;
  const { headers, message } = await post(target, 'initialize', {
    protocolVersion: legacyVersion,
    capabilities: {},
    clientInfo,
  });
  const version = message.result.protocolVersion;
  const session = headers.get('mcp-session-id') ?? undefined;
  const withSession = { ...target, session, version };
  await post(withSession, 'notifications/initialized', {}, undefined);
  return withSession;
}

const pollMs = 100;

async function listOnce(target) {
  const names = [];
  let cursor;
  let isComplete = true;
  do {
    const { message } = await post(target, 'tools/list', cursor === undefined ? {} : { cursor });
    if (message.error) throw new Error(`${target.name}: ${JSON.stringify(message.error)}`);
    for (const { name } of message.result.tools) names.push(name);
    isComplete &&= message.result._meta?.['dev.mcpyard/upstreams'] === undefined;
    cursor = message.result.nextCursor;
  } while (cursor !== undefined);
  return { names, isComplete };
}

/** The names of the tools, once there are this many and no server is missing. */
export async function listedTools(target, count, { withinMs = 60_000, everyMs = pollMs } = {}) {
  const until = Date.now() + withinMs;
  for (;;) {
    const { names, isComplete } = await listOnce(target);
    if (names.length >= count && isComplete) return names;
    if (Date.now() > until) throw new Error(`${target.name}: only ${names.length} of ${count} tools`);
    await sleep(everyMs);
  }
}
