import { describe, expect, test } from 'vitest';
import { parse } from './parse-fixture.ts';

describe('what must never be shown', () => {
  test('is what was filled in, from the environment or a file, wherever it stands', () => {
    const { secrets } = parse(
      `listen: 127.0.0.1:\${PORT}
servers:
  a: { command: [x, "--key=\${KEY}"], env: { N: "\${file:/k}" } }
  off: { command: "\${OFF}", enabled: false }
  unfilled: { command: "\${KEY2} \${NONE}" }`,
      {
        env: { PORT: '8808', KEY: 'key-one', KEY2: 'key-two', OFF: 'key-off' },
        files: { '/k': 'key-file\n' },
      },
    );
    expect(secrets.toSorted()).toEqual(['key-file', 'key-off', 'key-one', 'key-two']);
  });

  test('leaves out defaults and what is too short to be told from other text', () => {
    expect(
      parse(`servers: { a: { command: "x \${A:-default} \${B}" } }`, { env: { B: '12345' } }).secrets,
    ).toEqual([]);
  });

  test('is the value of a header of authorization, with its scheme and without', () => {
    const { secrets } = parse(`servers:
  a:
    url: http://x
    headers: { AUTHORIZATION: Bearer own-token, X-Api-Key: own-key, Cookie: sid=own-cookie, Accept-Language: german }`);
    const plain = ['Bearer own-token', 'sid=own-cookie', 'own-token', 'own-key'];
    expect(secrets.filter((secret) => !secret.includes('%'))).toEqual(plain);
  });

  test('is the value of a variable or a parameter whose name says so, and the secret of the seals', () => {
    const { secrets } = parse(`secret: own-secret
servers:
  a: { command: x, env: { GITHUB_TOKEN: own-token, DB_PASSWORD: own-password, MODE: production } }
  b: { url: "http://x/mcp?api_key=own-key&page=number-five" }`);
    expect(secrets.toSorted()).toEqual(['own-key', 'own-password', 'own-secret', 'own-token']);
  });

  test('comes longest first, and as it is spelled in JSON and in URLs, and line by line', () => {
    const { secrets } = parse(`servers: { a: { command: [x, "\${K}", "\${L}"] } }`, {
      env: { K: 'line "one"\nline/two', L: 'line/two and more' },
    });
    expect(secrets).toEqual(expect.arrayContaining(['line "one"\nline/two', 'line \\"one\\"\\nline/two']));
    expect(secrets).toEqual(expect.arrayContaining(['line "one"', 'line/two', 'line%2Ftwo%20and%20more']));
    expect(secrets.map(({ length }) => length)).toEqual(
      secrets.map(({ length }) => length).toSorted((a, b) => b - a),
    );
  });

  test('may hold what no URL can carry', () => {
    expect(
      parse(`servers: { a: { command: [x, "\${K}"] } }`, { env: { K: 'half \ud800 char' } }).secrets,
    ).toContain('half \ud800 char');
  });
});
