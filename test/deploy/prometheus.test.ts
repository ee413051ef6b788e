import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { broken, codeIn, page, rowsOf } from '../docs/markdown.ts';
import { deploy, haveAll, runTool } from './tools.ts';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

interface AlertTest {
  readonly alert_rule_test: readonly {
    readonly alertname: string;
    readonly eval_time: string;
    readonly exp_alerts: readonly unknown[];
  }[];
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
}

const alertsFile = join(deploy, 'prometheus/alerts.yaml');
const alerts = (
  parse(readFileSync(alertsFile, 'utf8')) as { groups: readonly { rules: readonly Alert[] }[] }
).groups.flatMap(({ rules }) => rules);
const testsFile = join(deploy, 'prometheus/alerts.test.yaml');
const checks = (parse(readFileSync(testsFile, 'utf8')) as { tests: readonly AlertTest[] }).tests.flatMap(
  (each) => each.alert_rule_test,
);
const dashboard = JSON.parse(readFileSync(join(deploy, 'grafana/dashboard.json'), 'utf8')) as Dashboard;

/** The labels of each metric, as docs/metrics.md has them; another test holds that page equal to the code. */
const documented = new Map(
  rowsOf(page('docs/metrics.md'))
    .filter(([names = '']) => /^`(?:mcp|process_|nodejs_)/.test(names))
    .flatMap(([names, _type, labels]) => codeIn(names).map((name) => [name, codeIn(labels)] as const)),
);

/** What Prometheus itself adds, and what a histogram has. */
const added = ['job', 'instance', 'le'];

const metricName = /\b(?:mcp|mcpyard|process|nodejs)_[a-z0-9_]+/g;
const baseOf = (name: string): string =>
  documented.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, '');

/** The metrics and labels of a query that there aren't. */
function strangersIn(expr: string): readonly string[] {
  const bare = expr.replaceAll(/"[^"]*"/g, '""');
  const metrics = [...bare.matchAll(new RegExp(`(${metricName.source})(?:\\{([^}]*)\\})?`, 'g'))].filter(
    ([, name = '']) => !/\bby \([^)]*$/.test(bare.slice(0, bare.indexOf(name))),
  );
  const labelsOf = (text: string): string[] => [...text.matchAll(/[a-z_]+/g)].map(([label]) => label);
  const grouped = [...bare.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = '']) => labelsOf(labels));
  const known = new Set(added);
  const wrong: string[] = [];
  for (const [, name = '', selector = ''] of metrics) {
    if (grouped.includes(name)) continue;
    const labels = documented.get(baseOf(name));
    if (labels === undefined) wrong.push(name);
    for (const label of labels ?? []) known.add(label);
    const chosen = [...selector.matchAll(/([a-z_]+)\s*[=!]/g)].map(([, label = '']) => label);
    wrong.push(
      ...chosen
        .filter((label) => ![...added, ...(labels ?? [])].includes(label))
        .map((label) => `${name}{${label}}`),
    );
  }
  return [...wrong, ...grouped.filter((label) => !known.has(label)).map((label) => `by (${label})`)];
}

const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => [title, expr] as const),
);

describe('what a query names', () => {
  test('is found out', () => {
    expect(documented.size).toBeGreaterThan(40);
    expect(strangersIn('sum by (upstream) (rate(mcpyard_child_restarts_total{reason="exit"}[5m]))')).toEqual(
      [],
    );
    expect(strangersIn('rate(mcp_server_operation_duration_seconds_bucket{job="x"}[5m])')).toEqual([]);
    expect(strangersIn('mcpyard_child_restart_total')).toEqual(['mcpyard_child_restart_total']);
    expect(strangersIn('mcpyard_child_up{server="x"}')).toEqual(['mcpyard_child_up{server}']);
    expect(strangersIn('sum by (era) (mcpyard_child_up)')).toEqual(['by (era)']);
  });
});

describe('the alerts', () => {
  test.each(alerts)('$alert asks only for metrics and labels that there are', ({ expr }) => {
    expect(expr).toMatch(/mcp|up\{/);
    expect(strangersIn(expr)).toEqual([]);
  });

  test.each(alerts)('$alert has a test that it fires, and that it resolves after that', ({ alert }) => {
    const own = checks.filter(({ alertname }) => alertname === alert);
    const fires = own.map(({ exp_alerts }) => exp_alerts.length > 0);
    expect(fires[0]).toBe(false);
    expect(fires).toContain(true);
    expect(fires.slice(fires.indexOf(true))).toContain(false);
  });

  test.each(alerts)('$alert says what to do', ({ labels, annotations }) => {
    expect(['warning', 'critical']).toContain(labels.severity);
    expect(annotations.summary).toMatch(/\.$/);
    expect(broken('README.md', annotations.runbook)).toBeUndefined();
  });

  test.skipIf(!haveAll('promtool'))('are rules that Prometheus takes', () => {
    const { status, stdout } = runTool('promtool', ['check', 'rules', alertsFile]);
    expect({ status, stdout }).toMatchObject({ status: 0 });
    expect(stdout).toContain(`${alerts.length} rules found`);
  });

  test.skipIf(!haveAll('promtool'))('fire and resolve as their tests say', () => {
    const { status, stdout, stderr } = runTool('promtool', ['test', 'rules', testsFile]);
    expect({ status, failed: (stdout + stderr).includes('FAILED'), stdout }).toMatchObject({
      status: 0,
      failed: false,
    });
  });
});

describe('the dashboard', () => {
  test.each(queries)('%s asks only for metrics and labels that there are: %s', (_title, expr) => {
    expect(strangersIn(expr)).toEqual([]);
  });

  test('has a fixed uid and takes its data source from a variable', () => {
    expect(dashboard.uid).toBe('mcpyard');
    const sources = dashboard.panels.flatMap(({ targets = [] }) =>
      targets.map(({ datasource }) => datasource.uid),
    );
    expect(new Set(sources)).toEqual(new Set([`\${datasource}`]));
    expect(dashboard.templating.list).toContainEqual(
      expect.objectContaining({ name: 'datasource', type: 'datasource' }),
    );
  });

  test('has panels with ids of their own, each with a query but for the headings', () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const without = dashboard.panels.filter(({ type, targets }) => type !== 'row' && !targets?.length);
    expect(without.map(({ title }) => title)).toEqual([]);
  });
});
