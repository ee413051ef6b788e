/** What of a config is worth a line of the log. */
import type { Config } from '../config/config.ts';
import type { Log } from '../observe/log.ts';

/** Says what of a config is worth a second look. */
export function tellConfig(config: Config, log: Log): void {
  for (const warning of config.warnings) log.warn({}, warning);
  for (const { name, kind, reason } of config.disabled) {
    if (kind === 'off') log.info({ upstream: name }, `${name}: off: ${reason}`);
    else log.error({ upstream: name }, `${name}: disabled: ${reason}`);
  }
}
