/** How scenarios went, in words. */
import { runScenario } from './suite.mjs';

const isBad = ({ status }) => status === 'FAILURE';
const isWorthSaying = ({ status }) => status === 'FAILURE' || status === 'WARNING';

/** What a scenario's checks say: whether it passed, and a line for each that failed or warned. */
function verdictOf(name, checks) {
  if (checks === undefined)
    return { name, isPassed: false, lines: ['no result: it crashed or ran out of time'] };
  const lines = checks
    .filter(isWorthSaying)
    .map(({ status, id, errorMessage, description }) => `${status} ${id}: ${errorMessage ?? description}`);
  return { name, isPassed: !checks.some(isBad), lines };
}

/** Runs the scenarios one by one, and tells `say` each verdict; resolves with the names of those that failed. */
export async function judge(suite, target, names, say) {
  const failed = [];
  for (const name of names) {
    const verdict = verdictOf(name, await runScenario(suite, target, name));
    if (!verdict.isPassed) failed.push(name);
    say(verdict);
  }
  return failed;
}

export function print({ name, isPassed, lines }) {
  console.log(`${isPassed ? 'PASS' : 'FAIL'} ${name}`);
  for (const line of lines) console.log(`     ${line}`);
}

/** The rows in columns; the last is as wide as it is. */
export function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => String(row[column]).length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => String(cell).padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
