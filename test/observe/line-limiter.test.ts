import { describe, expect, test, vi } from 'vitest';
import { LineLimiter, type LineLimits } from '../../src/observe/line-limiter.ts';
import { createLog } from '../../src/observe/log.ts';
import { Secrets } from '../../src/observe/secrets.ts';

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly dropped?: number;
}

function open(options: Partial<LineLimits> = {}) {
  const lines: Line[] = [];
  let nowMs = 0;
  const secrets = new Secrets(['abcdefghijklmnop']);
  const log = createLog({
    level: 'info',
    secrets: new Secrets(),
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const limits = { linesPerSecond: 10, burst: 3, mask: secrets.mask, now: () => nowMs, ...options };
  const limiter = new LineLimiter(log.child({ upstream: 'a' }), limits);
  return {
    lines,
    messages: () => lines.map(({ msg }) => msg),
    push: (text: string | Buffer) => limiter.push(Buffer.from(text)),
    close: () => limiter.close(),
    wait: (ms: number) => {
      nowMs += ms;
    },
  };
}

describe('what a child writes to stderr', () => {
  test('is logged line by line however its bytes arrive', () => {
    const { lines, push, messages } = open({ burst: 10 });
    const bytes = Buffer.from('one\r\ntwo ü\n\n  \nthree\n');
    for (const byte of bytes) push(Buffer.of(byte));
    push('a\nb\nhalf');
    expect(messages()).toEqual(['one', 'two ü', 'three', 'a', 'b']);
    expect(lines[0]).toMatchObject({ level: 'info', upstream: 'a', stream: 'stderr' });
  });

  test('is logged to its end when the child is gone, and goes on with the next child', () => {
    const { push, close, messages } = open();
    push('Error: no key');
    close();
    push('hello\n');
    expect(messages()).toEqual(['Error: no key', 'hello']);
  });

  test('loses its colours and other control sequences', () => {
    const { push, messages } = open();
    push('\u001b[31mred\u001b[0m text\n');
    expect(messages()).toEqual(['red text']);
  });

  test('is cut at 4 KiB a line, and a secret across the cut is hidden whole', () => {
    const { push, messages } = open();
    push(`${'x'.repeat(4_090)}abcdefghijklmnop${'y'.repeat(1e6)}`);
    push(`${'y'.repeat(1e6)}\nnext\n`);
    const [long = '', next] = messages();
    expect(long).toHaveLength(4_097);
    expect(long).not.toContain('abc');
    expect(next).toBe('next');
  });

  test('is dropped over the rate, and how much is said before the next line', () => {
    const { lines, messages, push, wait } = open();
    for (let line = 1; line <= 8; line++) push(`${line}\n`);
    expect(messages()).toEqual(['1', '2', '3']);
    wait(200);
    push('9\n10\n11\n');
    expect(messages().slice(3)).toEqual(['too many lines at once, dropped: 5', '9', '10']);
    expect(lines[3]).toMatchObject({ level: 'warn', dropped: 5 });
    wait(60_000);
    push('a\nb\nc\nd\n');
    expect(messages().slice(6)).toEqual(['too many lines at once, dropped: 1', 'a', 'b', 'c']);
  });

  test('is said to be dropped within a second where nothing follows', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { messages, push } = open({ burst: 1 });
      push('1\n2\n3\n');
      expect(messages()).toEqual(['1']);
      vi.advanceTimersByTime(1_000);
      expect(messages()).toEqual(['1', 'too many lines at once, dropped: 2']);
      vi.advanceTimersByTime(60_000);
      expect(messages()).toHaveLength(2);
    } finally {
      vi.useRealTimers();
    }
  });

  test('is said to be dropped when the child is gone', () => {
    const { messages, push, close } = open({ burst: 1 });
    push('1\n2\n');
    close();
    expect(messages()).toEqual(['1', 'too many lines at once, dropped: 1']);
  });
});
