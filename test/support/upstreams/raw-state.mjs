/** What the hand-written upstream remembers, and the results and errors of its era. */
import { appendFileSync } from 'node:fs';

const seenMax = 500;

/** Everything that the server remembers; one per process. */
export function createServerState(options) {
  const state = {
    options,
    seen: [],
    /** Modern listen streams: subscription id to `{ filter, notify }`. */
    subscriptions: new Map(),
    /** Legacy channels for messages outside any request. */
    channels: new Set(),
    /** Requests at work: id to AbortController. */
    running: new Map(),
    /** Questions put to the client: id to the function that takes its response. */
    asked: new Map(),
    sessions: new Set(),
    /** What a legacy client set for its session; one for all here. */
    level: undefined,
    /** Results of tasks by their ids. */
    tasks: new Map(),
    /** Lists what the tool `announce` has added. */
    added: [],
    record(entry) {
      state.seen.push(entry);
      if (state.seen.length > seenMax) state.seen.shift();
      if (options.logFile !== undefined) appendFileSync(options.logFile, `${JSON.stringify(entry)}\n`);
    },
  };
  state.record({ event: 'start', pid: process.pid });
  return state;
}

export const serverInfoOf = ({ name }) => ({ name, version: '1.0.0' });

/** A result of the server's era: the modern one says its type and who made it. */
export function resultOf({ options }, body, isCacheable = false) {
  if (options.era === 'legacy') return body;
  return {
    resultType: 'complete',
    ...body,
    ...(isCacheable ? { ttlMs: options.ttlMs, cacheScope: options.scope } : {}),
    _meta: { 'io.modelcontextprotocol/serverInfo': serverInfoOf(options) },
  };
}

/** An error that becomes a JSON-RPC error; `status` is its HTTP status where the server is modern. */
export const refusal = (code, message, { data, status } = {}) =>
  Object.assign(new Error(message), { code, data, status });
