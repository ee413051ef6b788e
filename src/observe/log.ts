/** The log: a line of JSON each on stderr, or readable lines at a terminal; secrets never get out of it. */
import { destination as fileDestination, type Logger, levels, pino, stdTimeFunctions } from 'pino';
import { cutText, plainFields } from './fields.ts';
import { readable } from './readable.ts';
import type { Secrets } from './secrets.ts';

type Say = (fields: object, message: string) => void;

export interface Log {
  readonly debug: Say;
  readonly info: Say;
  readonly warn: Say;
  readonly error: Say;
  /** A log whose lines all carry these fields. */
  child(fields: object): Log;
}

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/** The log that others are made from. */
export interface RootLog extends Log {
  /** From now on, in the logs made from it too. */
  setLevel(level: Level): void;
}

export interface LogOptions {
  readonly level: Level;
  /** Read at every line, so what is added later is hidden from then on. */
  readonly secrets: Secrets;
  /** Readable lines instead of JSON; without it, where stderr is a terminal and no destination is given. */
  readonly pretty?: boolean;
  /** Takes whole lines; stderr without one. */
  readonly destination?: { write(line: string): void };
}

const stderrFd = 2;

/** A log that hides secrets in every line, cuts messages and fields to 4 KiB and says errors with their causes. */
export function createLog({ level, secrets, pretty, destination }: LogOptions): RootLog {
  const isReadable = pretty ?? (destination === undefined && process.stderr.isTTY);
  const out = destination ?? fileDestination({ dest: stderrFd, sync: true });
  const lines = {
    write(line: string): void {
      const shown = secrets.mask(line);
      out.write(isReadable ? readable(shown) : shown);
    },
  };
  const logger = pino(
    {
      // Which lines are wanted is asked below, since a pino child keeps the level that it was born with.
      level: 'trace',
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (err: unknown) => err },
    },
    lines,
  );
  const gate = { least: rankOf(level) };
  return {
    ...wrap(logger, secrets, gate),
    setLevel: (next) => {
      gate.least = rankOf(next);
    },
  };
}

const rankOf = (level: Level): number =>
  level === 'silent' ? Number.POSITIVE_INFINITY : (levels.values[level] ?? 0);

/** The least important lines that are logged. */
interface Gate {
  least: number;
}

function wrap(logger: Logger, secrets: Secrets, gate: Gate): Log {
  const say = (level: 'debug' | 'info' | 'warn' | 'error'): Say => {
    const rank = rankOf(level);
    return (fields, message) => {
      if (rank < gate.least) return;
      logger[level](plainFields(fields, secrets.mask), cutText(message, secrets.mask));
    };
  };
  return {
    debug: say('debug'),
    info: say('info'),
    warn: say('warn'),
    error: say('error'),
    child: (fields) => wrap(logger.child(plainFields(fields, secrets.mask)), secrets, gate),
  };
}
