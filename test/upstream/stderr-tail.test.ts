import { expect, test } from 'vitest';
import { StderrTail } from '../../src/upstream/stderr-tail.ts';

const lastLineOf = (...chunks: string[]): string | undefined => {
  const tail = new StderrTail();
  for (const chunk of chunks) tail.push(Buffer.from(chunk));
  return tail.lastLine();
};

test.each([
  ['nothing', [], undefined],
  ['only space', ['\n \n'], undefined],
  ['the last of several', ['one\ntwo\n'], 'two'],
  ['a line cut into chunks', ['one\nt', 'w', 'o'], 'two'],
  ['a colored line', ['\u001b[31mboom\u001b[0m\n'], 'boom'],
  [
    'what Node.js throws',
    ["x.mjs:3\n  throw\n  ^\n\nError: boom\n    at f (x.mjs:3:9) {\n  code: 'E'\n}\n\nNode.js v20.20.2\n"],
    'Error: boom',
  ],
  ['a Python traceback', ['Traceback:\n  File "x.py", line 1\nValueError: boom\n'], 'ValueError: boom'],
  ['a flood', ['x'.repeat(100_000), `\n${'y'.repeat(1000)}`], 'y'.repeat(300)],
])('the last line of %s', (_, chunks, line) => {
  expect(lastLineOf(...chunks)).toBe(line);
});
