/** The levels of log messages, least important first (Logging, "Log Levels"). */
export const logLevels: readonly string[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
];

/** Whether whoever asked for `wanted` gets a message of `level`. */
export const isLogged = (level: string, wanted: string): boolean =>
  logLevels.indexOf(level) >= logLevels.indexOf(wanted);
