/** Which era a message belongs to, judged once from its headers and its body (Versioning, "Backward Compatibility"). */
import { find, isText, type Members, textOf } from './json.ts';
import { metaKey } from './message.ts';

export const modernVersion = '2026-07-28';
/** Newest first. */
export const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

export type Era = 'modern' | 'legacy';

export const isLegacyVersion = (version: string): boolean =>
  (legacyVersions as readonly string[]).includes(version);

export interface EraEvidence {
  readonly bytes: Buffer;
  readonly method: string;
  readonly meta: Members | undefined;
  readonly versionHeader: string | undefined;
}

/** Modern if the body says so or the header names no legacy version; an `initialize` or a session without modern `_meta` is legacy. */
export function eraOf(evidence: EraEvidence): Era {
  if (find(evidence.meta, metaKey.version) !== undefined) return 'modern';
  if (evidence.method === 'initialize') return 'legacy';
  const header = evidence.versionHeader;
  if (header !== undefined) return isLegacyVersion(header) ? 'legacy' : 'modern';
  return 'legacy';
}

/** The version that the body claims. */
export function bodyVersion(bytes: Buffer, meta: Members | undefined): string | undefined {
  const member = find(meta, metaKey.version);
  return isText(bytes, member, modernVersion) ? modernVersion : textOf(bytes, member);
}
