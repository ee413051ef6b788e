/** That a child of another process is down, as that process tells it. */
import type { RpcError } from '../protocol/errors.ts';

export class OwnerDown extends Error {
  /** Until the other process tries it again. */
  readonly waitMs: number;
  /** What calls get meanwhile, where that is not that it is down. */
  readonly refusal: RpcError | undefined;

  constructor(message: string, waitMs: number, refusal: RpcError | undefined) {
    super(message);
    this.name = 'OwnerDown';
    this.waitMs = waitMs;
    this.refusal = refusal;
  }
}
