/** `mcpyard tools`: what clients see. */
import { type Client, openClient } from './client.ts';
import type { Run, Terminal } from './command.ts';
import { type Answer, isRecord, type Json } from './post.ts';

const descriptionMax = 100;
/** Pages that are asked for, so that a server at `--url` can't keep this going for ever. */
const pagesMax = 1_000;
/** Where a gateway tells whose part of a list is missing or stale. */
const gapsKey = 'dev.mcpyard/upstreams';

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

function lineOf(tool: Json): string {
  const [first = ''] = text(tool['description']).split('\n');
  return `${text(tool['name'])}  ${first.slice(0, descriptionMax)}`.trimEnd();
}

function tellGaps(result: Json, terminal: Terminal): void {
  const meta = result['_meta'];
  const gaps = isRecord(meta) ? meta[gapsKey] : undefined;
  if (!isRecord(gaps)) return;
  for (const [name, gap] of Object.entries(gaps))
    if (isRecord(gap))
      terminal.err(`server ${name}: its tools are ${text(gap['state'])}: ${text(gap['reason'])}\n`);
}

type Tools = Json[] | Exclude<Answer, { kind: 'result' }>;

async function allTools(client: Client, terminal: Terminal): Promise<Tools> {
  const found: Json[] = [];
  let cursor: unknown;
  for (let page = 0; page < pagesMax; page++) {
    const answer = await client.request('tools/list', cursor === undefined ? {} : { cursor });
    if (answer.kind !== 'result') return answer;
    const { result } = answer;
    if (page === 0) tellGaps(result, terminal);
    if (Array.isArray(result['tools'])) found.push(...result['tools'].filter(isRecord));
    cursor = result['nextCursor'];
    if (cursor === undefined) return found;
  }
  return { kind: 'none', message: `the list has more than ${pagesMax} pages` };
}

export const tools: Run = async (_args, flags, terminal) => {
  const client = await openClient(flags, terminal);
  if (client === undefined) return 2;
  try {
    const found = await allTools(client, terminal);
    if (!Array.isArray(found)) {
      terminal.err(`${found.message}\n`);
      return 1;
    }
    if (flags.json) terminal.out(`${JSON.stringify({ tools: found })}\n`);
    else for (const tool of found) terminal.out(`${lineOf(tool)}\n`);
    return 0;
  } finally {
    await client.close();
  }
};
