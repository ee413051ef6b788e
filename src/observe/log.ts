/** The log: a line of JSON each on stderr, or readable lines at a terminal; secrets never get out of it. */
import { destination as fileDestination, type Logger, pino, stdTimeFunctions } from 'pino';
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

export interface LogOptions {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
  /** Read at every line, so what is added later is hidden from then on. */
  readonly secrets: Secrets;
  /** Readable lines instead of JSON; without it, where stderr is a terminal and no destination is given. */
  readonly pretty?: boolean;
  /** Takes whole lines; stderr without one. */
  readonly destination?: { write(line: string): void };
}

const stderrFd = 2;

/** A log that hides secrets in every line, cuts messages and fields to 4 KiB and says errors with their causes. */
export function createLog({ level, secrets, pretty, destination }: LogOptions): Log {
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
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (err: unknown) => err },
    },
    lines,
  );
  return wrap(logger, secrets);
}

function wrap(logger: Logger, secrets: Secrets): Log {
  const say =
    (level: 'debug' | 'info' | 'warn' | 'error'): Say =>
    (fields, message) => {
      if (!logger.isLevelEnabled(level)) return;
      logger[level](plainFields(fields, secrets.mask), cutText(message, secrets.mask));
    };
  return {
    debug: say('debug'),
    info: say('info'),
    warn: say('warn'),
    error: say('error'),
    child: (fields) => wrap(logger.child(plainFields(fields, secrets.mask)), secrets),
  };
}
