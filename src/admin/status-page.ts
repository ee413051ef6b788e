/** The status page: every upstream at a glance, made of plain HTML. */
import { createHash } from 'node:crypto';
import { type Health, publicError, type UpstreamHealth } from '../observe/health.ts';
import type { Secrets } from '../observe/secrets.ts';

const style = `:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:70rem}
table{border-collapse:collapse;width:100%;margin:0 0 2rem}th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #8884}
.up,.asleep{color:#080}.down,.crash_loop{color:#c00}.starting,.idle,.disabled{color:#888}
@media(prefers-color-scheme:dark){.up,.asleep{color:#6c6}.down,.crash_loop{color:#f77}}`;

/** Nothing is loaded, run, framed or sent; the page's one style is known by its hash. */
export const statusPolicy = (): string =>
  [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** A whole page; everything in it that came from elsewhere is escaped, and secrets are hidden. */
export function statusPage(health: Health, secrets: Secrets): string {
  const upstreams = health.upstreams();
  const up = upstreams.filter(({ state }) => state === 'up' || state === 'asleep').length;
  const leftOut = upstreams.flatMap(({ name, leftOut: items }) =>
    items.map((item) => ({ upstream: name, ...item })),
  );
  const state = health.ready() ? 'serving' : 'not serving';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>mcpyard</title>
<meta name="viewport" content="width=device-width"><style>${style}</style></head><body>
<h1>mcpyard</h1>
<p>${state}: ${up} of ${upstreams.length} upstreams up. <a href="/metrics">Metrics</a>, <a href="/readyz">readiness</a>.</p>
${table(
  ['Upstream', 'State', 'Era', 'Transport', 'Tools', 'Prompts', 'Resources', 'Error'],
  upstreams.map((upstream) => upstreamRow(upstream, secrets)),
)}
${
  leftOut.length === 0
    ? ''
    : `<h2>Left out</h2>\n${table(
        ['Upstream', 'Kind', 'Name', 'Why'],
        leftOut.map(({ upstream, kind, name, reason }) =>
          cells([upstream, kind, name, secrets.mask(reason)]),
        ),
      )}`
}
</body></html>
`;
}

const upstreamRow = (upstream: UpstreamHealth, secrets: Secrets): string => {
  const { name, state, instances, era, version, transport, tools, prompts, resources, breaker, error } =
    upstream;
  const spoken = [era, version].filter((part) => part !== undefined).join(' ');
  const shownState = instances === undefined ? state : `${state}, for ${plural(instances, 'caller')}`;
  const counts = [tools, prompts, resources].map((count) => String(count ?? ''));
  return `<td>${escapeHtml(name)}</td><td class="${escapeHtml(state)}">${escapeHtml(shownState)}${breaker === undefined ? '' : ', breaker open'}</td>${cells(
    [spoken, transport, ...counts, error === undefined ? '' : publicError(error, secrets)],
  )}`;
};

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

const cells = (texts: readonly string[]): string =>
  texts.map((text) => `<td>${escapeHtml(text)}</td>`).join('');

const table = (heads: readonly string[], rows: readonly string[]): string =>
  `<table><thead><tr>${heads.map((head) => `<th>${head}</th>`).join('')}</tr></thead>
<tbody>${rows.map((row) => `<tr>${row}</tr>`).join('\n')}</tbody></table>`;

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (found) => entities[found] ?? found);
