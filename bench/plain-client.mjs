/** A client on one plain socket that sends bytes and waits for the answer, as cheap as Node.js has it. */
import { connect } from 'node:net';
import { bodyOf, readHead } from './http-bytes.mjs';

const answerMs = 30_000;
const empty = Buffer.alloc(0);

export class PlainClient {
  #port;
  #socket;
  #bytes = empty;
  #waiting;

  constructor(port) {
    this.#port = port;
  }

  /** Resolves with status, head and body of the answer; rejects where the connection ends before it, or nothing comes. */
  send(bytes) {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket ??= this.#dial();
      this.#socket.write(bytes);
    });
  }

  close() {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #dial() {
    const socket = connect(this.#port, '127.0.0.1').setNoDelay(true);
    socket.setTimeout(answerMs, () => socket.destroy(new Error(`nothing within ${answerMs} ms`)));
    let failure;
    socket.once('error', (error) => {
      failure = error;
    });
    socket.once('close', () => {
      if (socket === this.#socket) this.#socket = undefined;
      this.#bytes = empty;
      this.#settle()?.reject(failure ?? new Error('the connection was closed'));
    });
    socket.on('data', (chunk) => this.#take(socket, chunk));
    return socket;
  }

  #take(socket, chunk) {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
    const head = readHead(this.#bytes);
    const whole = head && bodyOf(this.#bytes, head);
    if (whole === undefined) return;
    const answer = {
      status: Number(this.#bytes.latin1Slice(9, 12)),
      head: this.#bytes.latin1Slice(0, head.length),
      body: whole.body,
    };
    this.#bytes = this.#bytes.subarray(whole.ends);
    if (head.closes) socket.destroy();
    this.#settle()?.resolve(answer);
  }

  #settle() {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }
}

/** The message in an answer: its JSON, or the last event of a stream. */
export function messageIn({ head, body }) {
  const text = body.toString('utf8');
  if (!/\r\ncontent-type: text\/event-stream/i.test(head)) return JSON.parse(text);
  const data = text.split('\n').filter((line) => line.startsWith('data: '));
  return JSON.parse(data.at(-1)?.slice('data: '.length) ?? '');
}

/** Opens a stream, waits until its answer holds `sign`, and cuts the connection; rejects where it does not come. */
export function openAndLeave(port, bytes, sign) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    let isSeen = false;
    socket.setTimeout(answerMs, () => socket.destroy());
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (!text.includes(sign)) return;
      isSeen = true;
      socket.destroy();
    });
    socket.once('error', () => socket.destroy());
    socket.once('close', () => {
      if (isSeen) resolve();
      else reject(new Error(`no ${sign} in ${text.slice(0, 300)}`));
    });
    socket.write(bytes);
  });
}
