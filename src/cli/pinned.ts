/** Requests to a gateway of this machine that is known by its certificate, whatever name and issuer that has. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:tls';
import type { Fetch } from './post.ts';

/** Nothing is sent to whoever shows another certificate than the one in this file; rejects where that can't be read. */
export async function pinnedFetch(certFile: string): Promise<Fetch> {
  const { Agent, fetch: undiciFetch } = await import('undici');
  const { raw } = new X509Certificate(await readFile(certFile));
  const dispatcher = new Agent({
    connect: ({ hostname, port }, callback) => {
      // The name and the issuer don't count, since the certificate does.
      const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
      socket.once('error', (error) => callback(error, null));
      socket.once('secureConnect', () => {
        if (socket.getPeerX509Certificate()?.raw.equals(raw)) callback(null, socket);
        else socket.destroy(new Error(`it shows another certificate than ${certFile}`));
      });
    },
  });
  return (url, init) => undiciFetch(url, { ...init, dispatcher });
}
