/** What a gateway is called across restarts. */
import { createHash } from 'node:crypto';
import type { Config } from './config/config.ts';

/** The same config file, the same name. */
export const instanceOf = (config: Pick<Config, 'file'>): string =>
  createHash('sha256').update(config.file).digest('hex').slice(0, 16);
