import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { deploy, haveAll, runTool } from './tools.ts';

const file = join(deploy, 'launchd/dev.mcpyard.gateway.plist');
const text = readFileSync(file, 'utf8');

type Value = string | number | boolean | readonly Value[] | { readonly [key: string]: Value };

/** Reads the part of property lists that is used here; throws at anything else, unbalanced tags included. */
function parsePlist(xml: string): Value {
  const body = xml.replace(/^<\?xml[^>]*\?>\s*<!DOCTYPE plist[^>]*>/, '').replace(/<!--[\s\S]*?-->/g, '');
  const tokens = [...body.matchAll(/<[^>]*>|[^<]+/g)]
    .map(([token]) => token)
    .filter((token) => token.trim() !== '');
  const take = (): string => tokens.shift() ?? '';
  const expectToken = (wanted: string): void => {
    const token = take();
    if (token !== wanted) throw new Error(`expected ${wanted}, not ${token}`);
  };
  const textOf = (tag: string): string => {
    const content = take();
    expectToken(`</${tag}>`);
    return content.replaceAll('&gt;', '>').replaceAll('&lt;', '<').replaceAll('&amp;', '&');
  };
  const value = (): Value => {
    const token = take();
    switch (token) {
      case '<string>':
        return textOf('string');
      case '<integer>':
        return Number(textOf('integer'));
      case '<true/>':
      case '<false/>':
        return token === '<true/>';
      case '<array>': {
        const items: Value[] = [];
        while (tokens[0] !== '</array>') items.push(value());
        take();
        return items;
      }
      case '<dict>': {
        const members: Record<string, Value> = {};
        while (tokens[0] !== '</dict>') {
          expectToken('<key>');
          const key = textOf('key');
          members[key] = value();
        }
        take();
        return members;
      }
      default:
        throw new Error(`unexpected ${token}`);
    }
  };
  expectToken('<plist version="1.0">');
  const whole = value();
  expectToken('</plist>');
  if (tokens.length > 0) throw new Error(`more than one value: ${tokens[0]}`);
  return whole;
}

describe('the launchd agent', () => {
  test('is a property list that is named as its file', () => {
    expect(parsePlist(text)).toMatchObject({
      Label: 'dev.mcpyard.gateway',
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
    });
  });

  test('replaces the shell by the gateway, so that launchd signals the gateway', () => {
    const { ProgramArguments: argv } = parsePlist(text) as { ProgramArguments: readonly string[] };
    expect(argv.slice(0, 2)).toEqual(['/bin/sh', '-lc']);
    expect(argv[2]).toMatch(/^exec node ".+\/dist\/main\.js" serve -c "\$HOME\//);
  });

  test('gives the gateway longer than a drain and the end of its children take', () => {
    expect((parsePlist(text) as { ExitTimeOut: number }).ExitTimeOut).toBeGreaterThanOrEqual(35);
  });

  test('would not be read with a tag that is not closed', () => {
    expect(() => parsePlist(text.replace('</dict>', ''))).toThrow();
  });

  test.skipIf(!haveAll('xmllint'))('is well-formed XML', () => {
    expect(runTool('xmllint', ['--noout', '--nonet', file])).toEqual({ status: 0, stdout: '', stderr: '' });
  });
});
