/** Every fixture, at every revision that the suite knows, through the gateway. */
import { join } from 'node:path';
import { Servers } from './servers.mjs';
import { scenariosOf, tasksSpec } from './suite.mjs';
import { judge, print, table } from './verdicts.mjs';

/** How many scenarios have to pass, by the fixture and the revision of the client, or the extension: all, but for what no gateway can do. */
const floors = {
  modern: { '2026-07-28': 40, '2025-11-25': 33, '2025-06-18': 27, '2025-03-26': 1 },
  legacy: { '2026-07-28': 37, '2025-11-25': 33, '2025-06-18': 27, '2025-03-26': 1 },
  tasks: { [tasksSpec]: 10 },
};

/** Runs all, prints a table, and resolves with whether each cell reached its floor; what it leaves is in `folder`. */
export async function runMatrix(suite, folder) {
  const rows = [['upstream', 'revision', 'passed', 'failed', 'floor', 'failed scenarios']];
  let isFine = true;
  for (const [era, floorOf] of Object.entries(floors)) {
    const servers = new Servers(join(folder, era));
    try {
      const url = await servers.startGateway(era, false);
      for (const [spec, floor] of Object.entries(floorOf)) {
        console.log(`\n${era} upstream, ${spec}`);
        const names = scenariosOf(suite, spec);
        const target = { url, spec, folder: join(folder, era) };
        const failed = await judge(suite, target, names, (verdict) => {
          if (verdict.lines.length > 0) print(verdict);
        });
        const passed = names.length - failed.length;
        isFine &&= passed >= floor;
        rows.push([era, spec, passed, failed.length, floor, failed.join(' ')]);
      }
    } finally {
      await servers.stop();
    }
  }
  console.log(`\n${table(rows)}`);
  return isFine;
}
