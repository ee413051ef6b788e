#!/usr/bin/env node
/**
 * A hand-written MCP server for tests: no package builds its messages, so that a test knows every byte on the wire.
 *
 *   raw-upstream.mjs --era modern|legacy --transport stdio|http|sse [--port N] …
 *
 * `sse` is the HTTP+SSE of 2024-11-05. Over HTTP it prints `listening PORT`. What it receives is kept: the tool `seen` answers it, and `--log FILE` appends it.
 */
import { parseArgs } from 'node:util';
import { serveHttp } from './raw-http.mjs';
import { serveSse } from './raw-sse.mjs';
import { createServerState } from './raw-state.mjs';
import { serveStdio } from './raw-stdio.mjs';

const { values } = parseArgs({
  options: {
    era: { type: 'string', default: 'modern' },
    transport: { type: 'string', default: 'http' },
    port: { type: 'string', default: '0' },
    /** Stands in serverInfo and in the resources' URIs. */
    name: { type: 'string', default: 'raw' },
    /** The revision that a legacy server answers `initialize` with. */
    version: { type: 'string', default: '2025-11-25' },
    /** Lists come in pages of so many; one page without it. */
    'page-size': { type: 'string' },
    'ttl-ms': { type: 'string', default: '60000' },
    scope: { type: 'string', default: 'public' },
    /** Lists are answered after so many milliseconds. */
    'list-delay-ms': { type: 'string', default: '0' },
    /** Every answer comes as an SSE stream. */
    sse: { type: 'boolean', default: false },
    /** The status with which a server of HTTP+SSE refuses what it doesn't know. */
    refusal: { type: 'string', default: '404' },
    /** The first line on stdout is no JSON. */
    noise: { type: 'boolean', default: false },
    log: { type: 'string' },
  },
});

const state = createServerState({
  era: values.era,
  transport: values.transport,
  name: values.name,
  version: values.version,
  pageSize: values['page-size'] === undefined ? Number.POSITIVE_INFINITY : Number(values['page-size']),
  ttlMs: Number(values['ttl-ms']),
  scope: values.scope,
  listDelayMs: Number(values['list-delay-ms']),
  isSse: values.sse,
  refusal: Number(values.refusal),
  logFile: values.log,
});

if (values.noise) console.log('this line is no JSON');
if (values.transport === 'stdio') serveStdio(state);
else if (values.transport === 'sse') serveSse(state, Number(values.port));
else serveHttp(state, Number(values.port));
