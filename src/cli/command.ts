/** What every command of the command line gets and gives. */
import type { Config } from '../config/config.ts';
import { ConfigError } from '../config/errors.ts';
import { loadConfig } from '../config/load.ts';

/** The world outside, passed in. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  out(text: string): void;
  err(text: string): void;
}

/** 0 done, 1 something is not as it should be, 2 the command or the config can't be used. */
export type ExitCode = 0 | 1 | 2;

export interface Flags {
  readonly config: string | undefined;
  readonly json: boolean;
  readonly offline: boolean;
  readonly markdown: boolean;
  readonly url: string | undefined;
  /** The key of a running gateway, instead of MCPYARD_KEY. */
  readonly key: string | undefined;
  readonly force: boolean;
  readonly dryRun: boolean;
  /** Each as it was typed: `NAME=VALUE`. */
  readonly env: readonly string[];
  /** Each as it was typed: `Name: value`. */
  readonly header: readonly string[];
  /** What stands behind `--`, where there is one and the command has a use for it. */
  readonly rest: readonly string[] | undefined;
}

/** One command at work; never throws for what a person can type. */
export type Run = (args: readonly string[], flags: Flags, terminal: Terminal) => Promise<ExitCode>;

export interface Command {
  /** One line of the help. */
  readonly summary: string;
  readonly usage: string;
  /** The flags that mean something to it, beside `--config`. */
  readonly flags: readonly (keyof Flags)[];
  /** How many words may follow its name. */
  readonly wordsMax: number;
  /** Loads what it runs, and nothing that other commands need. */
  load(): Promise<Run>;
}

export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** The config, or undefined after its errors were printed. */
export async function readConfig(
  flags: Flags,
  { env, cwd, out, err }: Terminal,
  load = () => loadConfig({ env, cwd, ...(flags.config === undefined ? {} : { file: flags.config }) }),
): Promise<Config | undefined> {
  try {
    return await load();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { message, issues } = error;
    if (flags.json) out(`${JSON.stringify({ ok: false, message, issues })}\n`);
    else err(`${message}\n`);
    return undefined;
  }
}
