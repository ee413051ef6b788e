/** Results as Markdown. */

const padded = (cell, width) => cell + ' '.repeat(width - cell.length);

/** A Markdown table whose columns are as wide as their widest cell. */
function tableOf(head, rows) {
  const widths = head.map((cell, column) =>
    Math.max(3, cell.length, ...rows.map((row) => row[column].length)),
  );
  const line = (cells) => `| ${cells.map((cell, column) => padded(cell, widths[column])).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

const number = (value, digits = 0) => (Number.isFinite(value) ? value.toFixed(digits) : '');
const spread = ({ median, low, high }, digits) =>
  Number.isFinite(median)
    ? `${median.toFixed(digits)} (${low.toFixed(digits)} to ${high.toFixed(digits)})`
    : '';

function loadRow([name, found]) {
  const { rate, against, p50Us, p99Us, cpuUs, cpuShare, loadShare, bad, foreign } = found;
  return [
    name,
    number(rate.median),
    spread(against.rate, against.rate.median < 0.095 ? 4 : 3),
    number(p50Us.median),
    number(against.p50Us.median, 2),
    number(p99Us.median),
    number(against.p99Us.median, 2),
    number(cpuUs.median, 1),
    number(cpuShare.median * 100),
    number(loadShare.median * 100),
    String(bad),
    number(foreign * 100),
  ];
}

/** One table of a scenario: of load on targets, or of whatever columns it names itself. */
export function markdownOf(table) {
  if (table.head !== undefined) return `${table.work}\n\n${tableOf(table.head, table.rows)}`;
  const head = [
    'target',
    'calls/s',
    `x ${table.reference} (quartiles)`,
    'p50 us',
    'x',
    'p99 us',
    'x',
    'CPU us',
    'CPU %',
    'load %',
    'bad',
    'others %',
  ];
  const rows = Object.entries(table.targets).map(loadRow);
  return `${table.work}, ${table.rounds} rounds\n\n${tableOf(head, rows)}`;
}

const owedTable = (lines) =>
  tableOf(
    ['work', 'floor', 'goal', 'measured (quartiles)', 'reaches'],
    lines.map((line) => [line.work, line.floorShown, line.goalShown, line.shown, line.verdict]),
  );

/** A whole result as a page. */
export function pageOf({ date, versions, settings, scenarios }) {
  const owed = scenarios.flatMap((scenario) => scenario.owed);
  const parts = [
    `# Result of ${date.slice(0, 10)}`,
    tableOf(
      ['what', ''],
      Object.entries({ date, ...versions, ...settings }).map(([name, value]) => [name, String(value)]),
    ),
    "Ratios are medians of the ratios of each round, with the quartiles. CPU us: the processor's time of the target a call; load %: of its core that the load took; bad: answers with a wrong status, id or payload; others %: the most of a core that other processes took in a slice.",
  ];
  if (owed.length > 0) parts.push('## What has to be seen', owedTable(owed));
  for (const { name, about, tables, failed } of scenarios) {
    parts.push(`## ${name}`, about, ...tables.map(markdownOf));
    if (failed !== undefined) parts.push(`Failed: ${failed}`);
  }
  return `${parts.join('\n\n')}\n`;
}
