/** One request on its way through the hand-written upstream, whatever the transport. */
import { randomUUID } from 'node:crypto';

/** The response around a result's text; official servers put the result first, hand-written ones the id. */
const responseText = (id, result, order) =>
  order === 'result-first'
    ? `{"result":${result},"jsonrpc":"2.0","id":${JSON.stringify(id)}}`
    : `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;

/**
 * Builds an exchange. `write(text)` sends a message before the response, `send(text, how)` the response itself:
 * `how` may hold `sse`, `chunked`, `dieAfterBytes` and a `status`, as far as the transport knows them.
 */
export function createExchange(state, { message, raw, controller, write, send }) {
  const { id } = message;
  state.running.set(id, controller);
  const finish = (text, how = {}) => {
    state.running.delete(id);
    send(text, how);
  };
  return {
    message,
    raw,
    signal: controller.signal,
    send: finish,
    notify: (notification) => write(JSON.stringify(notification)),
    reply: (result, how = {}) => finish(responseText(id, result, how.order), how),
    fail: (error, status) => finish(JSON.stringify({ jsonrpc: '2.0', id, error }), { status }),
    /** Asks the client and resolves with its whole response, or with undefined where none comes in time. */
    ask(method, params, timeoutMs) {
      const question = randomUUID();
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        controller.signal.addEventListener('abort', () => {
          clearTimeout(timer);
          resolve(undefined);
        });
        state.asked.set(question, (response) => {
          clearTimeout(timer);
          resolve(response);
        });
        write(JSON.stringify({ jsonrpc: '2.0', id: question, method, params }));
      });
    },
  };
}

/** Whether a message asks for the log itself, which is not worth logging. */
export const isAboutLog = (message) => message.method === 'tools/call' && message.params?.name === 'seen';
