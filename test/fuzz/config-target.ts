/** The config loader: a config, or an error with places; the same for YAML and JSON; no secret in what it says. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands in configs
import { stringify } from 'yaml';
import { ConfigError } from '../../src/config/errors.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { mutatedBytes, mutatedText, subjectsOf } from './mutations.ts';
import type { Tape } from './tape.ts';
import { Disagreement, must, mustEqual, type Target } from './target.ts';

const secret = 'S3CRET-canary-0123456789abcdefghij';
const subjects = subjectsOf([
  '{"listen":"127.0.0.1:0","admin":"[::1]:9808","hosts":["gw.example.com"],"servers":{"files":{"command":["node","server.js","${HOME}"],"env":{"TOKEN":"${TOKEN}"},"timeout":"30s"},"web":{"url":"https://mcp.example.com/mcp","headers":{"Authorization":"Bearer ${TOKEN}"},"tools":{"allow":["get_*"],"deny":["get_secret"],"rename":{"get_a":"a"}}}}}',
  '{"limits":{"body":"4MiB","holdBytes":"64KiB","nesting":64,"callsInFlight":100},"lists":{"deadline":"2s","pageSize":50},"cache":{"defaultTtl":"0ms","max":"1GiB"},"names":{"separator":"-","max":64},"log":{"level":"warn","calls":"all"},"drainTimeout":"10s","secret":"${TOKEN}","servers":{"a":{"command":"npx -y \'some server\' --flag","cwd":"sub","roots":["/srv","file:///x"],"isolation":"shared"},"b":{"url":"http://127.0.0.1:9/sse","transport":"sse","enabled":false,"passthrough":["/files"],"prefix":""}}}',
  '{"auth":"keys","keys":{"alice":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},"origins":["https://app.example.com"],"publicUrl":"https://gw.example.com/","trustedProxies":["10.0.0.0/8"],"tls":{"cert":"a.pem","key":"b.pem"},"metrics":{"token":"${file:/run/token}"},"stateDir":"state","legacySse":true,"probe":{"interval":"30s"},"servers":{"c":{"command":"x","startTimeout":"1m","maxTimeout":"1h","idleTimeout":"off"}}}',
]);
const pieces = [
  '${TOKEN}',
  '${NOPE}',
  '${NOPE:-5s}',
  '$${',
  '${',
  '${file:/nope}',
  '596h',
  '99999999999999999999s',
  '-1s',
  '1.5s',
];
pieces.push(
  '0B',
  '- a\n',
  '&a ',
  '*a',
  '<<: ',
  '!!binary x',
  '|\n  x',
  '---\n',
  '"\\x41"',
  '# c\n',
  '\t',
  '? ',
  '{',
  ': ',
  '~',
  '0x1F',
  '.inf',
);

const sources = {
  file: '/etc/mcpyard/config.yaml',
  env: { TOKEN: secret, HOME: '/root', EMPTY: '' },
  readSecretFile: (name: string): string => {
    if (name === '/run/token') return `${secret}\n`;
    throw new Error('ENOENT');
  },
};

type Outcome =
  | { readonly kind: 'config'; readonly config: unknown }
  | { readonly kind: 'error'; readonly issues: readonly string[] };

const linePattern = /^config\.yaml:(\d+):(\d+)/;

function outcomeOf(text: string): Outcome {
  try {
    return { kind: 'config', config: parseConfig(text, sources) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw new Disagreement(`a crash: ${(error as Error).stack}`, text);
    must(error.issues.length > 0, 'an error without an issue', text);
    const lines = text.split(/\r\n|\n|\r/).length;
    for (const { line, column } of error.issues)
      must(
        line >= 1 && line <= lines + 1 && column >= 1,
        `a place that is not there: ${line}:${column} of ${lines}`,
        text,
      );
    must(!error.message.includes(secret), 'an error shows a secret', text);
    must(linePattern.test(error.message), 'an error does not say where', text);
    return { kind: 'error', issues: error.issues.map(({ path, message }) => `${path}: ${message}`).sort() };
  }
}

function withPieces(text: string, tape: Tape): string {
  let out = text;
  for (let left = tape.below(3); left > 0; left--) {
    const at = tape.below(out.length + 1);
    out = out.slice(0, at) + tape.pick(pieces) + out.slice(at + tape.below(3));
  }
  return out;
}

const treeOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

function checkConfig(tape: Tape): void {
  const json = mutatedText(subjects, tape);
  const tree = treeOf(json.replace(/E\+400/gi, '0'));
  const isYaml = tape.below(2) === 1 && tree !== undefined;
  const written = isYaml ? stringify(tree) : json;
  const text =
    tape.below(3) === 0 ? mutatedBytes(Buffer.from(withPieces(written, tape)), tape).toString() : written;
  const found = outcomeOf(text);
  // What was printed anew from data has no duplicates, so only then both have to say the same.
  if (!isYaml || text !== written) return;
  const other = outcomeOf(JSON.stringify(tree, null, 2));
  mustEqual(other.kind, found.kind, 'JSON and YAML', text);
  if (found.kind === 'error' && other.kind === 'error')
    mustEqual(other.issues, found.issues, 'complaints about JSON and YAML', text);
  else mustEqual(JSON.stringify(other), JSON.stringify(found), 'JSON and YAML', text);
}

export const configs: Target = { name: 'config loader', weight: 0.3, check: checkConfig };
