/** The certificate of the listener: read, checked, and read again when its files change. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { SecureContextOptions } from 'node:tls';
import { type FileWatch, watchFiles } from '../config/file-watch.ts';
import type { Log } from '../observe/log.ts';

/** Paths of PEM files. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** What the files hold: a certificate and the key that belongs to it. */
export interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** When the certificate ends. */
  readonly validTo: Date;
}

const fileBytesMax = 1024 * 1024;
export const handshakeMs = 10_000;

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const failure = (message: string, cause: unknown): Error =>
  Object.assign(new Error(`tls: ${message}`, { cause }), { code: 'ETLS' });

async function readPem(file: string): Promise<Buffer> {
  try {
    const { size } = await stat(file);
    if (size > fileBytesMax) throw new Error(`longer than ${fileBytesMax} bytes`);
    return await readFile(file);
  } catch (error) {
    throw failure(`${file} can't be read: ${reasonOf(error)}`, error);
  }
}

const parsed = <T>(file: string, what: string, parse: () => T): T => {
  try {
    return parse();
  } catch (error) {
    throw failure(`${file} is no ${what} in PEM: ${reasonOf(error)}`, error);
  }
};

/** Rejects with an error (`code` is ETLS) that names the file and what is wrong with it. */
export async function readPair(files: TlsFiles): Promise<Pair> {
  const [cert, key] = await Promise.all([readPem(files.cert), readPem(files.key)]);
  const certificate = parsed(files.cert, 'certificate', () => new X509Certificate(cert));
  const privateKey = parsed(files.key, 'private key without a passphrase', () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey))
    throw failure(`${files.key} is not the key of the certificate in ${files.cert}`, undefined);
  return { cert, key, validTo: new Date(certificate.validTo) };
}

export const tlsOptions = ({ cert, key }: Pair): SecureContextOptions => ({
  cert,
  key,
  minVersion: 'TLSv1.2',
});

function tell({ cert }: TlsFiles, { validTo }: Pair, log: Log): void {
  const until = validTo.toISOString();
  if (validTo.getTime() < Date.now()) log.warn({ cert, until }, `tls: the certificate ended on ${until}`);
  else log.info({ cert, until }, `tls: the certificate is valid until ${until}`);
}

export interface FreshOptions {
  readonly files: TlsFiles;
  readonly pair: Pair;
  readonly log: Log;
  /** Takes in a new pair, for connections from now on. */
  use(options: SecureContextOptions): void;
}

/** Uses what the files hold as soon as they change; a pair that can't be used leaves the last one in place and says why. */
export function keepFresh({ files, pair, log, use }: FreshOptions): FileWatch {
  let current = pair;
  let complaint: string | undefined;
  let isClosed = false;
  tell(files, pair, log);
  const take = (next: Pair): void => {
    complaint = undefined;
    if (next.cert.equals(current.cert) && next.key.equals(current.key)) return;
    use(tlsOptions(next));
    current = next;
    tell(files, next, log);
  };
  const look = async (): Promise<void> => {
    try {
      const next = await readPair(files);
      if (!isClosed) take(next);
    } catch (error) {
      // Said once, since the folder is looked at again and again.
      if (isClosed || complaint === reasonOf(error)) return;
      complaint = reasonOf(error);
      log.error({ err: error }, `${complaint}; the last certificate stays in use`);
    }
  };
  const watch = watchFiles({
    files: [files.cert, files.key],
    changed: () => void look(),
    failed: (folder, error) =>
      log.warn({ err: error }, `tls: ${folder} can't be watched; its files are read once a minute`),
  });
  return {
    close() {
      isClosed = true;
      watch.close();
    },
  };
}
