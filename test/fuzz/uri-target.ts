/** URIs of resources in results that stream through, against the same done to the parsed text. */
import { UriStream } from '../../src/protocol/uri-stream.ts';
import { jsonTree, textOf } from './json-target.ts';
import type { TreeNode } from './json-tree.ts';
import { answers } from './messages.ts';
import { mutated, subjectsOf } from './mutations.ts';
import type { Tape } from './tape.ts';
import { Disagreement, must, mustEqual, type Target } from './target.ts';

const subjects = subjectsOf([
  ...answers,
  '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"resource_link","uri":"file:///a","name":"uri"},{"type":"resource","resource":{"uri":"file:///b \\u00e4","text":"{\\"uri\\":\\"file:///no\\"}"}}],"structuredContent":{"uri":"file:///no"}}}',
  '{"jsonrpc":"2.0","id":1,"result":{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"file:///c"}}},{"role":"user","content":[{"type":"resource_link","uri":"file:///d"}]}]}}',
  '{"jsonrpc":"2.0","id":1,"result":{"_meta":{"ui":{"resourceUri":"ui://e"},"ui/resourceUri":"ui://f"},"taskId":"t","result":{"contents":[{"uri":"file:///g","blob":"eA=="}],"content":[]}}}',
  '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"none","data":{"uri":"file:///h","data":{"uri":"file:///no"}}}}',
]);

/** Paths to URIs from the response on; `*` is any element of a list. */
const content = ['content/*/uri', 'content/*/resource/uri', 'contents/*/uri', 'contents/*/resource/uri'];
const inResult = [
  ...content,
  ...['content', 'content/*'].flatMap((at) => [`messages/*/${at}/uri`, `messages/*/${at}/resource/uri`]),
  '_meta/ui/resourceUri',
  '_meta/ui\\/resourceUri',
];
const paths = new Set([
  ...inResult.flatMap((path) => [`result/${path}`, `result/result/${path}`]),
  'error/data/uri',
]);

const rewrite = (uri: string): string => (/^[a-z]+:/.test(uri) ? uri.replace(':', ':up+"é') : uri);

/** The text with every URI at one of the paths rewritten. */
function wantedText(text: string, tree: TreeNode): string {
  let out = '';
  let from = 0;
  const visit = (node: TreeNode, path: string): void => {
    if (node.kind === 'leaf' && paths.has(path) && text[node.start] === '"') {
      const uri = JSON.parse(text.slice(node.start, node.end)) as string;
      const now = rewrite(uri);
      if (now === uri) return;
      out += text.slice(from, node.start) + JSON.stringify(now);
      from = node.end;
    }
    const below = (key: string): string => (path === '' ? key : `${path}/${key}`);
    for (const member of node.members) visit(member.node, below(member.key.replaceAll('/', '\\/')));
    for (const item of node.items) visit(item, below('*'));
  };
  visit(tree, '');
  return out + text.slice(from);
}

function passed(chunks: readonly Buffer[], bytes: Buffer): string {
  const stream = new UriStream(rewrite);
  try {
    return Buffer.concat(chunks.flatMap((chunk) => stream.push(chunk))).toString('latin1');
  } catch (error) {
    throw new Disagreement(`a crash: ${(error as Error).stack}`, bytes);
  }
}

function checkUris(tape: Tape): void {
  const bytes = mutated(subjects, tape);
  const whole = passed([bytes], bytes);
  const chunks = tape.cuts(bytes);
  const inPieces = passed(chunks, bytes);
  const text = textOf(bytes);
  const tree = jsonTree(text);
  // What breaks off in a URI is held to the end; nothing else may depend on the pieces.
  if (text === undefined || tree === undefined) {
    must(inPieces.startsWith(whole.slice(0, inPieces.length)), 'bytes in pieces', chunks);
    return;
  }
  mustEqual(inPieces, whole, 'an answer in pieces', chunks);
  const found = Buffer.from(whole, 'latin1').toString();
  mustEqual(found, wantedText(text, tree), 'URIs of an answer', bytes);
}

export const uris: Target = { name: 'URIs in answers', weight: 7, check: checkUris };
