/** What of the gateway's own environment a child may see: never the secrets of other servers. */

const passed: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'TERM',
  'LANG',
  'TZ',
  'TMPDIR',
  'TEMP',
  'TMP',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
]);
const passedPrefix = /^(?:LC|XDG)_/;

/** The whole environment of a child: the safe part of `own`, what was configured, and the marker by which it is found again. */
export function childEnv(
  own: NodeJS.ProcessEnv,
  configured: Readonly<Record<string, string>>,
  marker: string,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && (passed.has(name) || passedPrefix.test(name))) env[name] = value;
  }
  return { ...env, ...configured, MCPYARD_CHILD: marker };
}
