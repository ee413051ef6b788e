/** Reads members of JSON text as they were written. */

function endOfString(text, from) {
  let i = from + 1;
  while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i + 1;
}

/** The index after the value that starts at `from`. */
function endOfValue(text, from) {
  if (text[from] === '"') return endOfString(text, from);
  if (text[from] !== '{' && text[from] !== '[') return from + /^[^,\]}\s]+/.exec(text.slice(from))[0].length;
  let depth = 0;
  for (let i = from; ; ) {
    if (text[i] === '"') {
      i = endOfString(text, i);
      continue;
    }
    if (text[i] === '{' || text[i] === '[') depth++;
    if (text[i] === '}' || text[i] === ']') depth--;
    i++;
    if (depth === 0) return i;
  }
}

const afterSpace = (text, from) => from + /^\s*/.exec(text.slice(from))[0].length;

/** The text of a member of an object, as written, or undefined where it has none; `text` has to be valid JSON. */
export function memberText(text, key) {
  let i = afterSpace(text, 0) + 1;
  for (;;) {
    i = afterSpace(text, i);
    if (text[i] === '}') return undefined;
    const keyEnd = endOfString(text, i);
    const name = JSON.parse(text.slice(i, keyEnd));
    const start = afterSpace(text, afterSpace(text, keyEnd) + 1);
    const end = endOfValue(text, start);
    if (name === key) return text.slice(start, end);
    i = afterSpace(text, end);
    if (text[i] === ',') i++;
  }
}
