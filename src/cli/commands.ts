/** Every command: what the help says of it, what it takes, and where it is, so that only the one that runs is loaded. */
import type { Command } from './command.ts';
import { keyUsage } from './usage.ts';

/** By name, in the order of the help. */
export const commands: Readonly<Record<string, Command>> = {
  serve: {
    usage: 'serve',
    summary: 'run the gateway (the default command)',
    flags: [],
    wordsMax: 0,
    load: async () => (await import('./serve.ts')).serve,
  },
  stdio: {
    usage: 'stdio [--url URL] [--key KEY]',
    summary:
      'serve one client on stdin and stdout: with the servers of the config, or through the gateway at URL',
    flags: ['url', 'key'],
    wordsMax: 0,
    load: async () => (await import('./stdio.ts')).stdio,
  },
  check: {
    usage: 'check [--offline] [--json]',
    summary: 'check the config, then each server; exit 0, 1 (a server is not up) or 2 (the config is wrong)',
    flags: ['json', 'offline'],
    wordsMax: 0,
    load: async () => (await import('./check.ts')).check,
  },
  tools: {
    usage: 'tools [--url URL] [--key KEY] [--json]',
    summary: 'list the tools as clients see them',
    flags: ['json', 'url', 'key'],
    wordsMax: 0,
    load: async () => (await import('./tools.ts')).tools,
  },
  call: {
    usage: 'call NAME [JSON] [--url URL] [--key KEY] [--json]',
    summary: 'call one tool with these arguments',
    flags: ['json', 'url', 'key'],
    wordsMax: 2,
    load: async () => (await import('./call.ts')).call,
  },
  explain: {
    usage: 'explain NAME [--json]',
    summary: 'say which server a tool, prompt or resource URI is of, and why it is called so',
    flags: ['json'],
    wordsMax: 1,
    load: async () => (await import('./explain.ts')).explain,
  },
  import: {
    usage: 'import FILE… [--dry-run] [--force] [--json]',
    summary: 'take over the servers of Claude Desktop, Claude Code, Cursor or VS Code from their file',
    flags: ['json', 'dryRun', 'force'],
    wordsMax: Number.POSITIVE_INFINITY,
    load: async () => (await import('./import.ts')).importCommand,
  },
  add: {
    usage: 'add NAME URL | -- COMMAND ARG… [--force]',
    summary:
      "put a server into the config; --env NAME=VALUE and --header 'Name: value' may be given several times",
    flags: ['env', 'header', 'force', 'rest'],
    wordsMax: 2,
    load: async () => (await import('./add.ts')).add,
  },
  remove: {
    usage: 'remove NAME',
    summary: 'take a server out of the config',
    flags: [],
    wordsMax: 1,
    load: async () => (await import('./remove.ts')).remove,
  },
  key: {
    usage: keyUsage,
    summary: 'make a key for a caller and keep its hash in the config, list the keys, take one back',
    flags: ['json'],
    wordsMax: 2,
    load: async () => (await import('./key.ts')).key,
  },
  schema: {
    usage: 'schema [--markdown]',
    summary: 'print the JSON Schema of the config, or its reference',
    flags: ['markdown'],
    wordsMax: 0,
    load: async () => (await import('./schema.ts')).schema,
  },
};
