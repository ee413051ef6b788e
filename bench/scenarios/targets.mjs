/** Targets that several scenarios have in common. */
import { listedTools } from '../client.mjs';
import { nginxVersion, startNginx } from '../nginx.mjs';
import { asLegacy, direct, startGateway, startMock, stdioMock } from '../servers.mjs';

/** This many servers of a config, `u0` and so on, all at one mock. */
export const urls = (port, count) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      `u${index}`,
      { url: `http://127.0.0.1:${port}/u${index}/mcp` },
    ]),
  );

/** Says a table and keeps it. */
export function tell(bench, table) {
  bench.tables.push(table);
  bench.say(table);
}

/** The mock alone, nginx where there is one, and mcpyard between a modern client and a modern HTTP upstream. */
export async function modernTargets(bench) {
  const port = await startMock(bench);
  const gateway = await startGateway(bench, urls(port, 1));
  await listedTools(gateway, 50);
  const plain = nginxVersion() === undefined ? [] : [await startNginx(bench, port)];
  if (plain.length === 0)
    bench.note('NGINX IS MISSING: ratios are against the mock without anything between');
  return [await direct(bench), ...plain, gateway];
}

/** mcpyard between a modern client and a modern stdio upstream. */
export async function stdioTarget(bench) {
  const gateway = await startGateway(bench, { s0: { command: stdioMock(bench) } }, { name: 'stdio' });
  await listedTools(gateway, 50);
  return gateway;
}

/** mcpyard between a legacy client and a legacy HTTP upstream. */
export async function legacyTarget(bench) {
  const port = await startMock(bench, { era: 'legacy' });
  const gateway = await startGateway(bench, urls(port, 1));
  const legacy = await asLegacy(gateway, 'legacy pair');
  await listedTools(legacy, 50);
  return legacy;
}
