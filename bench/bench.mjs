/** What one scenario has at hand: how long it measures, what it started, and what it found. */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { nginxVersion } from './nginx.mjs';
import { markdownOf } from './report.mjs';
import { needsNginx, owedRow } from './rows.mjs';

const openMs = 60_000;

function opens(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(socket.destroy() && true));
    socket.once('error', () => resolve(false));
  });
}

/** A bench for one scenario; `stop` ends all that was started and leaves no file. */
export function createBench({ programs, rounds, sliceMs, warmMs, tries, say = console.log }) {
  const base = mkdtempSync(path.join(tmpdir(), 'mcpyard-bench-'));
  const drop = () => rmSync(base, { recursive: true, force: true });
  process.once('exit', drop);
  const stops = [];
  const tables = [];
  const owed = [];
  return {
    programs,
    rounds,
    sliceMs,
    warmMs,
    /** How often a slice is taken at most where others disturb it. */
    tries,
    files: new Map(),
    warmed: new Set(),
    tables,
    owed,
    /** A table is said as soon as it is there. */
    say: (table) => say(`\n${markdownOf(table)}`),
    note: say,
    /** A row of what has to be seen, with the summary of its ratio or figure. */
    owe(row, value) {
      if (needsNginx(row) && nginxVersion() === undefined) {
        say(`\nleft out, since there is no nginx: ${row}`);
        return;
      }
      const line = owedRow(row, value);
      owed.push(line);
      say(`\n${line.work}: ${line.shown}, ${line.verdict}`);
    },
    folder: (name) => mkdtempSync(path.join(base, `${name}-`)),
    async started(starting) {
      const begun = await starting;
      stops.push(begun.stop);
      return begun;
    },
    async untilOpen(port) {
      const until = Date.now() + openMs;
      while (!(await opens(port))) {
        if (Date.now() > until) throw new Error(`nothing listens on ${port}`);
        await sleep(20);
      }
    },
    async stop() {
      await Promise.all(stops.map((stop) => stop()));
      process.removeListener('exit', drop);
      drop();
    },
  };
}
