// Speaks JSON-RPC lines; each method is one thing that children are seen to do.
import { closeSync, writeSync } from 'node:fs';

const write = (text) => process.stdout.write(text);
const reply = (id, result) => write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function flood(bytes) {
  const line = Buffer.from(`${'warning: '.repeat(100)}\n`);
  for (let sent = 0; sent < bytes; sent += line.length) {
    for (;;) {
      try {
        writeSync(2, line);
        break;
      } catch (error) {
        if (error.code !== 'EAGAIN') throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
      }
    }
  }
}

const held = [];
const methods = {
  echo: (id, params) => reply(id, params),
  silent: () => {},
  padded: (id) => write(`\r\n\r\n  ${JSON.stringify({ jsonrpc: '2.0', id, result: {} })} \t\r\n\r\n`),
  mark: (id) => write(`\ufeff${JSON.stringify({ jsonrpc: '2.0', id, result: {} })}\n`),
  async split(id, params) {
    const line = Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id, result: params })}\n`);
    for (const byte of line) {
      writeSync(1, Buffer.of(byte));
      if (byte > 0x7f) await sleep(2);
    }
  },
  /** Half an answer to the call before this one, and behind it, on the same line, whole ones to it and to this. */
  glued(id) {
    write(`{"jsonrpc":"2.0","id":${id - 1},"result":{"text":"torn`);
    write(`{"jsonrpc":"2.0","method":"notifications/x"}{"jsonrpc":"2.0","id":${id},"result":"whole"}\n`);
  },
  big: (id, params) => reply(id, 'x'.repeat(params.bytes)),
  late: (id, params) =>
    write(
      `{"result":{"id":${params.other},"text":"${'x'.repeat(params.bytes)}"},"jsonrpc":"2.0","id":${id}}\n`,
    ),
  flood(id, params) {
    flood(params.bytes);
    reply(id, {});
  },
  noise(id) {
    for (const line of ['Listening on stdio', '{"level":"info"}', 'null', '[1]', '{"jsonrpc":"2.0"}'])
      write(`${line}\n`);
    process.stdout.write(Buffer.from('{"jsonrpc":"2.0","method":"\xff"}\n', 'latin1'));
    write(`{"jsonrpc":"2.0","id":${id + 1000},"result":{}}\n{"jsonrpc":"2.0","id":null,"error":{}}\n`);
    reply(id, 'first');
    reply(id, 'second');
  },
  notify(id) {
    write('{"jsonrpc":"2.0","method":"notifications/made/up"}\n');
    write('{"jsonrpc":"2.0","id":"q1","method":"roots/list"}\n');
    reply(id, {});
  },
  hold(id, params) {
    held.push(id);
    if (held.length < params.count) return;
    held.sort(() => Math.random() - 0.5);
    for (const one of held.splice(0)) reply(one, { for: one });
  },
  exit(_id, params) {
    process.stderr.write(params.words ?? '');
    process.exitCode = params.code;
    process.stdin.destroy();
  },
  answerThenExit(id, params) {
    process.stdout.write(
      `${JSON.stringify({ jsonrpc: '2.0', id, result: 'x'.repeat(params.bytes) })}\n`,
      () => process.exit(0),
    );
  },
  throw: () => {
    throw new TypeError('the disk is full');
  },
  kill: () => process.kill(process.pid, 'SIGKILL'),
  closeInput(id) {
    reply(id, {});
    setTimeout(() => {
      process.stdin.removeAllListeners('end');
      process.stdin.destroy();
      closeSync(0);
      setInterval(() => {}, 1000);
    }, 20);
  },
  closeOutput() {
    setInterval(() => {}, 1000);
    process.stdout.destroy();
    closeSync(1);
  },
  pause: (id) => {
    reply(id, {});
    process.stdin.pause();
    setInterval(() => {}, 1000);
  },
};

let rest = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (text) => {
  const lines = (rest + text).split('\n');
  rest = lines.pop();
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line);
    methods[method](id, params);
  }
});
