/** The keys of one server in the config: the only place of their defaults and their documentation. */
import { z } from 'zod';
import { isPlainPath } from './address.ts';
import { count, documented, duration, durationOrOff, httpUrl, text } from './fields.ts';

/** What a server may be named. */
export const serverNamePattern = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;

const publicName = /^[A-Za-z0-9_.-]*$/;
const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** Visible ASCII, spaces and tabs, and what Latin-1 adds: no line end, so no header can be smuggled in. */
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;

const argument = z.string().refine((value) => !value.includes('\0'), { error: 'holds a NUL character' });

const toolName = () => text('a name').max(256, { error: 'expected a name of at most 256 characters' });

const command = z.union([argument, z.array(argument)]);

const environment = z.record(
  z.string().regex(/^[^=\0]+$/, { error: 'is no name for an environment variable' }),
  argument,
);

const headers = z.record(
  z.string().regex(headerName, { error: 'is no name for a header' }),
  z.string().regex(headerValue, { error: 'holds a character that a header can not carry' }),
);

const prefix = z
  .string()
  .regex(publicName, { error: 'expected letters, digits, _, . and - only' })
  .max(64, { error: 'expected at most 64 characters' });

const rename = z.record(
  toolName(),
  z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/, {
    error: 'expected 1 to 128 letters, digits, _, . and - as the new name',
  }),
);

const tools = z.strictObject({
  allow: documented(
    z.array(toolName()).optional(),
    "Globs (`*` and `?`) for the tools to offer, matched against the server's own names.",
    { fallback: 'all' },
  ),
  deny: documented(
    z.array(toolName()).default([]),
    'Globs for the tools to leave out; they win over `allow`.',
  ),
  rename: documented(
    rename.default({}),
    "New names for tools, by the server's own name; the prefix is put before the new one.",
    { type: 'map of strings' },
  ),
});

const restart = z.strictObject({
  initial: documented(
    duration().prefault('250ms'),
    'How long it is waited before the second try, up to half of it less by chance; the first comes at once, and each further wait is twice as long.',
  ),
  max: documented(duration().prefault('60s'), 'The longest such wait.'),
  stable: documented(
    duration().prefault('10s'),
    'How long the server must stay up for the waits to begin anew.',
  ),
});

const concurrency = z.strictObject({
  max: documented(count().default(1000), 'How many calls may be unanswered at the server at once.'),
  queue: documented(count(0).default(1000), 'How many further calls wait until one of them has ended.'),
  queueTimeout: documented(duration().prefault('30s'), 'How long a call waits so.'),
});

const breaker = z.strictObject({
  failures: documented(
    count(0).default(10),
    "After how many failures in a row calls are refused at once: timeouts, lost connections and HTTP statuses from 500 on, never errors of the server's own tools; 0 for never.",
  ),
  cooldown: documented(
    duration().prefault('1s'),
    'How long they are refused, until one call goes out to see whether the server is back; doubled each time that it is not.',
  ),
  maxCooldown: documented(duration().prefault('30s'), 'The longest such time.'),
});

export const serverSchema = z
  .strictObject({
    command: documented(
      command.optional(),
      'The program to run, spoken to over stdin and stdout: a list is one argv, verbatim; a string with `args` is one program; a string alone is split as a shell would split it, with no shell and no expansion.',
      { type: 'string or list of strings' },
    ),
    args: documented(z.array(argument).optional(), 'The arguments of a `command` that is one program.'),
    env: documented(
      environment.default({}),
      "Environment variables for the program, beside a small safe set (PATH, HOME and the like) of the gateway's own.",
      { type: 'map of strings' },
    ),
    cwd: documented(
      text('a path').optional(),
      'The folder in which the program runs; a relative one starts at the folder of the config file.',
      { type: 'path', fallback: 'the folder of the config file' },
    ),
    url: documented(
      httpUrl().optional(),
      'The URL of a server that is reached over HTTP, instead of `command`.',
    ),
    headers: documented(
      headers.default({}),
      'Headers to send to `url`; their values are masked wherever they carry authorization.',
      { type: 'map of strings' },
    ),
    transport: documented(
      z.enum(['auto', 'streamable-http', 'sse']).default('auto'),
      'How `url` is spoken to: `auto` tries Streamable HTTP and falls back to the HTTP+SSE of 2024-11-05.',
    ),
    enabled: documented(z.boolean().default(true), 'Whether the server is used at all.'),
    prefix: documented(
      prefix.optional(),
      'What stands before the separator in public names; `""` drops the separator too.',
      { fallback: "the server's name" },
    ),
    tools: documented(tools.prefault({}), 'Which tools are offered, and under which names.'),
    isolation: documented(
      z.enum(['shared', 'caller']).default('shared'),
      'Whether all callers share one process or session (`shared`), or each caller has its own (`caller`): by its key, or without keys by its session, which clients of 2026-07-28 do not have, so that all of those share one.',
    ),
    roots: documented(
      z.array(text('a path or a file: URI')).default([]),
      'The roots that a server is told of when it asks, unless it is isolated and its caller has roots: paths or `file:` URIs.',
    ),
    startTimeout: documented(
      duration().prefault('30s'),
      'How long the server may take to start and to shake hands.',
    ),
    timeout: documented(
      duration().prefault('5m'),
      'How long a call may take without any progress; each progress notification starts it anew.',
    ),
    maxTimeout: documented(
      duration().prefault('1h'),
      'How long a call may take in all, progress or not; where only one of the two is set, the other follows it.',
    ),
    idleTimeout: documented(
      durationOrOff().optional(),
      'After how long without calls the server is stopped until a call needs it again; its lists stay, unless each caller has its own. Never while a call waits for an answer or a client watches one of its resources.',
      { fallback: 'off, 10m with isolation: caller' },
    ),
    retry: documented(
      z.enum(['off', 'idempotent']).default('off'),
      'Whether a call whose server went away or answered 502, 503 or 504 is sent once more: never (`off`), or where that does no harm (`idempotent`), which a tool says with `readOnlyHint` or `idempotentHint`, and which holds for prompts, resources and completions.',
    ),
    restart: documented(restart.prefault({}), 'When a server that went away is started again.'),
    concurrency: documented(concurrency.prefault({}), 'One busy server costs the others nothing.'),
    breaker: documented(
      breaker.prefault({}),
      'A server that fails call after call is not asked for a while.',
    ),
    passthrough: documented(
      z
        .array(
          z
            .string()
            .regex(/^\/[^?#\s]*$/, { error: 'expected a path such as /files', abort: true })
            .refine(isPlainPath, { error: 'expected a path without //, .., \\ or % in it' }),
        )
        .default([]),
      "Other paths at the origin of the server's `url`, with all below them, that GET and HEAD reach as `/servers/<name>/…`.",
    ),
    passthroughHeaders: documented(
      z.boolean().default(false),
      'Whether requests to paths of `passthrough` carry the `headers`, so that callers get what those give access to.',
    ),
  })
  .meta({ oneOf: [{ required: ['command'] }, { required: ['url'] }] });

export type ServerSettings = z.output<typeof serverSchema>;
