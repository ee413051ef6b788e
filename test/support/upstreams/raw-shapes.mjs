/** Tools of the hand-written upstream whose results the revisions say differently, or that speak while they run. */
import { resultOf } from './raw-state.mjs';

const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
const levelKey = 'io.modelcontextprotocol/logLevel';

/** What a server of this era may say of its output. */
export const outputSchemas = {
  shaped: { type: 'object', properties: { n: { type: 'integer' }, any: true } },
  listed: { type: 'array', items: { $ref: '#/$defs/n' }, $defs: { n: { type: 'integer' } } },
};

export function shaped(state, exchange) {
  const content = [{ type: 'text', text: '{"n":1}' }];
  exchange.reply(JSON.stringify(resultOf(state, { content, structuredContent: { n: 1 } })));
}

export function listed(state, exchange) {
  exchange.reply(JSON.stringify(resultOf(state, { content: [], structuredContent: [1, 2] })));
}

export function media(state, exchange) {
  const content = [
    { type: 'resource_link', uri: `raw://${state.options.name}/one`, name: 'one' },
    { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
  ];
  exchange.reply(JSON.stringify(resultOf(state, { content })));
}

/** A log line of each of these levels, as far as the client asked for it: with its call, or for its session. */
export function log(state, exchange, { levels = 'debug,info,error' }) {
  const meta = exchange.message.params._meta;
  const wanted = state.options.era === 'modern' ? meta?.[levelKey] : (state.level ?? 'debug');
  for (const level of levels.split(',')) {
    if (wanted === undefined || logLevels.indexOf(level) < logLevels.indexOf(wanted)) continue;
    const params = { level, logger: 'raw', data: `a line of ${level}` };
    exchange.notify({ jsonrpc: '2.0', method: 'notifications/message', params });
  }
  exchange.reply(JSON.stringify(resultOf(state, { content: [{ type: 'text', text: 'Logged' }] })));
}

/** A task of 2025-11-25, which is done when its result is asked for. */
export function job(state, exchange) {
  const { task } = exchange.message.params;
  if (task === undefined) return exchange.fail({ code: -32601, message: 'This tool runs as a task only' });
  const taskId = `task-${state.tasks.size}`;
  const nowIso = new Date().toISOString();
  state.tasks.set(taskId, { content: [{ type: 'text', text: 'The job is done' }] });
  const created = { taskId, status: 'working', createdAt: nowIso, lastUpdatedAt: nowIso, ttl: 60_000 };
  exchange.reply(JSON.stringify({ task: created }));
}
