/** `mcpyard explain NAME`: whose a public name is, and why it is called so. */
import { type Inspection, inspect } from '../app.ts';
import { createLog } from '../observe/log.ts';
import { Secrets } from '../observe/secrets.ts';
import { type Run, readConfig } from './command.ts';
import { type Explanation, explanationOf } from './explanation.ts';
import { interruptible } from './signals.ts';

function linesOf({ name, owners, hints, nearest }: Explanation): readonly string[] {
  if (owners.length > 0)
    return owners.flatMap(({ kind, server, localName, reasons }) => [
      localName === name
        ? `${name}: ${kind} of server ${server}`
        : `${name}: ${kind} \`${localName}\` of server ${server}`,
      ...reasons.map((reason) => `  ${reason}`),
    ]);
  return [
    `${name}: no tool, prompt or resource of that name`,
    ...hints.map((hint) => `  ${hint}`),
    ...(nearest.length === 0 ? [] : [`  did you mean ${nearest.join(', ')}?`]),
  ];
}

/** The servers whose names can't be known now. */
const unknownOnes = ({ upstreams }: Inspection): readonly string[] =>
  upstreams.flatMap(({ name, state, error }) =>
    state === 'up' || state === 'disabled'
      ? []
      : [`server ${name} is ${state}: ${error ?? 'its names are not known'}`],
  );

export const explain: Run = async ([name], flags, terminal) => {
  if (name === undefined) {
    terminal.err('Which name? For instance: mcpyard explain everything__echo\n');
    return 2;
  }
  const config = await readConfig(flags, terminal);
  if (config === undefined) return 2;
  const secrets = new Secrets(config.secrets);
  const log = createLog({ level: 'error', secrets });
  const uri = URL.canParse(name) ? name : undefined;
  const context = { log, env: terminal.env, secrets };
  const inspection = await interruptible((signal) => inspect(config, context, signal, uri));
  const explanation = explanationOf(name, config, inspection);
  const isKnown = explanation.owners.length > 0;
  if (flags.json) {
    terminal.out(`${secrets.mask(JSON.stringify({ ok: isKnown, ...explanation }))}\n`);
    return isKnown ? 0 : 1;
  }
  for (const line of unknownOnes(inspection)) terminal.err(`${secrets.mask(line)}\n`);
  for (const line of linesOf(explanation)) terminal.out(`${secrets.mask(line)}\n`);
  return isKnown ? 0 : 1;
};
