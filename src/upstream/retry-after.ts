/** How long a server asks to be left alone (RFC 9110, 10.2.3). */

/** No server may ask for more than this. */
const retryAfterMaxMs = 86_400_000;

/** In ms from `nowMs`, a wall-clock time; undefined where the status is not 429 or 503, or the header makes no sense. */
export function retryAfter(status: number, header: string | undefined, nowMs: number): number | undefined {
  if ((status !== 429 && status !== 503) || header === undefined) return undefined;
  const text = header.trim();
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), retryAfterMaxMs);
}
