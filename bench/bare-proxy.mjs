/**
 * The least that a proxy of node:http and undici does: bodies pass, nothing is read of them. What a call through the
 * gateway costs is told as a multiple of this one.
 *
 *   node bare-proxy.mjs UPSTREAM_PORT
 */
import { createServer } from 'node:http';
import { Pool } from 'undici';

const pool = new Pool(`http://127.0.0.1:${process.argv[2]}`, { headersTimeout: 0, bodyTimeout: 0 });
const headers = ['content-type', 'application/json', 'accept', 'application/json, text/event-stream'];

/** Sends what comes on to the client; a failure destroys its connection. */
const passTo = (res) => ({
  onRequestStart() {},
  onResponseStart(_controller, statusCode, incoming) {
    const length = incoming['content-length'];
    res.writeHead(statusCode, { 'content-type': incoming['content-type'], 'content-length': length });
  },
  onResponseData(_controller, chunk) {
    res.write(chunk);
  },
  onResponseEnd() {
    res.end();
  },
  onResponseError() {
    res.destroy();
  },
});

const server = createServer((req, res) => {
  const chunks = [];
  req.on('data', (chunk) => chunks.push(chunk));
  req.on('end', () => {
    const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
    pool.dispatch({ path: '/u0/mcp', method: 'POST', headers, body }, passTo(res));
  });
});
server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`));
