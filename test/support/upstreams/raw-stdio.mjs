/** The hand-written upstream on stdin and stdout: one message a line. */
import { createInterface } from 'node:readline';
import { createExchange, isAboutLog } from './raw-exchange.mjs';
import { handleOther, handleRequest } from './raw-methods.mjs';

const writeLine = (text) => process.stdout.write(`${text}\n`);

function send(text, { dieAfterBytes }) {
  if (dieAfterBytes === undefined) return writeLine(text);
  process.stdout.write(text.slice(0, dieAfterBytes), () => process.exit(1));
}

/** Serves until stdin ends. */
export function serveStdio(state) {
  if (state.options.era === 'legacy') state.channels.add((message) => writeLine(JSON.stringify(message)));
  createInterface({ input: process.stdin })
    .on('line', (raw) => {
      const message = JSON.parse(raw);
      if (!isAboutLog(message)) state.record({ method: message.method, id: message.id, raw, headers: [] });
      if (message.id === undefined || message.method === undefined) return handleOther(state, message);
      const controller = new AbortController();
      handleRequest(state, createExchange(state, { message, raw, controller, write: writeLine, send }));
    })
    .on('close', () => process.exit(0));
}
