/** What the metrics library tells of each process, put together: one row for each, told apart by the label `worker`. */

/** What one process tells of itself, in Prometheus' text format. */
export interface ProcessText {
  readonly name: string;
  readonly text: string;
}

/** The lines of a metric: what it is, then its samples. */
interface Block {
  readonly head: string;
  readonly lines: string[];
}

/** In parts of one metric each. */
export function* mergedProcesses(processes: readonly ProcessText[]): Generator<string> {
  const blocks = new Map<string, Block>();
  for (const { name, text } of processes) collect(blocks, text, `worker="${name}"`);
  for (const { head, lines } of blocks.values()) yield `${head}${lines.join('')}`;
}

function collect(blocks: Map<string, Block>, text: string, label: string): void {
  let block: Block | undefined;
  let head = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('# HELP ')) head = `${line}\n`;
    else if (line.startsWith('# TYPE ')) {
      block = blocks.get(line) ?? { head: `${head}${line}\n`, lines: [] };
      blocks.set(line, block);
    } else if (line !== '') block?.lines.push(`${labelled(line, label)}\n`);
  }
}

/** Names and labels of the library hold no brace or space in a value. */
function labelled(sample: string, label: string): string {
  const brace = sample.indexOf('{');
  const space = sample.indexOf(' ');
  if (brace >= 0 && brace < space) return `${sample.slice(0, brace + 1)}${label},${sample.slice(brace + 1)}`;
  return `${sample.slice(0, space)}{${label}}${sample.slice(space)}`;
}
