/** Sealed texts: what the gateway hands out and takes back (cursors, ids) can be neither read nor made by others. */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';

/** Seals of one purpose; those of another can't be opened with it. */
export interface Seal {
  seal(value: unknown): string;
  /** The value, or undefined where the text was not sealed with this key for this purpose. */
  open(text: string): unknown;
}

const nonceBytes = 12;
const tagBytes = 16;

/** AES-256-GCM; the key is derived once per purpose, since derivation is slow. */
export function createSeal(secret: Buffer, purpose: string, randomBytes: (size: number) => Buffer): Seal {
  const key = Buffer.from(hkdfSync('sha256', secret, 'mcpyard', purpose, 32));
  return {
    seal: (value) => {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', key, nonce);
      const body = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url');
    },
    open: (text) => {
      const bytes = Buffer.from(text, 'base64url');
      if (bytes.length < nonceBytes + tagBytes) return undefined;
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes));
      decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
      try {
        const body = Buffer.concat([
          decipher.update(bytes.subarray(nonceBytes + tagBytes)),
          decipher.final(),
        ]);
        return JSON.parse(body.toString('utf8'));
      } catch {
        return undefined;
      }
    },
  };
}
