/** Reads Prometheus' text format 0.0.4 strictly: a line that isn't part of it is an error. */

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Exposition {
  readonly types: ReadonlyMap<string, string>;
  readonly samples: readonly Sample[];
  /** The value of the one sample with this name and exactly these labels. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

const sampleForm = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const labelForm = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\n"])*)"(?:,|$)/y;
const unescapes: Readonly<Record<string, string>> = { '\\\\': '\\', '\\n': '\n', '\\"': '"' };

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  labelForm.lastIndex = 0;
  while (labelForm.lastIndex < text.length) {
    const match = labelForm.exec(text);
    if (match === null) throw new Error(`bad labels: ${text}`);
    const [, name = '', value = ''] = match;
    if (name in labels) throw new Error(`label twice: ${text}`);
    labels[name] = value.replace(/\\[\\n"]/g, (found) => unescapes[found] ?? found);
  }
  return labels;
}

function readValue(text: string): number {
  if (text === '+Inf') return Infinity;
  const value = Number(text);
  if (text === '' || (Number.isNaN(value) && text !== 'NaN' && text !== 'Nan'))
    throw new Error(`bad value: ${text}`);
  return value;
}

const keyOf = (labels: Readonly<Record<string, string>>): string =>
  JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));

function readSample(line: string): Sample {
  const [, name = '', labels = '', value = ''] = sampleForm.exec(line) ?? [];
  if (name === '') throw new Error(`bad line: ${line}`);
  return { name, labels: readLabels(labels), value: readValue(value) };
}

function addOnce<V>(map: Map<string, V>, key: string, value: V): void {
  if (map.has(key)) throw new Error(`twice: ${key}`);
  map.set(key, value);
}

export function parseExposition(text: string): Exposition {
  if (!text.endsWith('\n')) throw new Error('no line end at the end');
  const types = new Map<string, string>();
  const values = new Map<string, number>();
  const samples: Sample[] = [];
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('# HELP ')) continue;
    const [, typed, type] = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(line) ?? [];
    if (typed !== undefined && type !== undefined) {
      addOnce(types, typed, type);
      continue;
    }
    const sample = readSample(line);
    addOnce(values, `${sample.name}${keyOf(sample.labels)}`, sample.value);
    samples.push(sample);
  }
  return { types, samples, value: (name, labels = {}) => values.get(`${name}${keyOf(labels)}`) };
}
