import { expect, test } from 'vitest';
import { gluedAt } from '../../src/upstream/glued-line.ts';

const isJson = (part: Buffer): boolean => {
  try {
    JSON.parse(part.toString());
    return true;
  } catch {
    return false;
  }
};

const answer = '{"jsonrpc":"2.0","id":7,"result":{}}';
const torn = '{"jsonrpc":"2.0","id":5,"result":{"text":"ab';

test.each([
  ['a torn answer', torn, answer],
  ['a whole answer', answer, answer],
  ['a torn answer with its result first', '{"result":{"a":[1,', answer],
  ['a torn answer, and one with its result first', torn, '{"result":{},"jsonrpc":"2.0","id":7}'],
  ['a torn notification', '{"method":"notifications/x","par', answer],
  ['a torn answer, and a request', torn, '{"method":"ping","id":1,"jsonrpc":"2.0"}'],
])('behind %s the next message is found', (_, before, message) => {
  expect(gluedAt(Buffer.from(before + message), isJson)).toBe(before.length);
});

test.each([
  ['a log of what was received', `Received: ${answer}`],
  ['a torn answer alone', torn],
  ['two torn ones', torn + torn],
  ['an answer that repeats one inside of a text', `${torn}${JSON.stringify(answer).slice(1, -1)}"}}x`],
  ['an answer that has one inside of it, and is torn later', `${torn}","a":${answer},"b":`],
  ['nothing', ''],
])('in %s there is none', (_, line) => {
  expect(gluedAt(Buffer.from(line), isJson)).toBe(0);
});
