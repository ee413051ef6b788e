/** Targets that several scenarios have in common. */
import { listedTools } from '../client.mjs';
import {
  asLegacy,
  direct,
  nginxVersion,
  startGateway,
  startMock,
  startNginx,
  stdioMock,
} from '../servers.mjs';

const url = (port, name = 'u0') => ({ url: `http://127.0.0.1:${port}/${name}/mcp` });

/** The mock alone, nginx where there is one, and mcpyard between a modern client and a modern HTTP upstream. */
export async function modernTargets(bench) {
  const port = await startMock(bench);
  const gateway = await startGateway(bench, { u0: url(port) });
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
  const gateway = await startGateway(bench, { l0: url(port) });
  const legacy = await asLegacy(gateway, 'legacy pair');
  await listedTools(legacy, 50);
  return legacy;
}
