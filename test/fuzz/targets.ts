/** All that is fuzzed. A new target is a file beside this one and a line here. */
import { answerMessages, longAnswers } from './answer-target.ts';
import { configs } from './config-target.ts';
import { frames } from './frame-target.ts';
import { headerValues, paramHeaders } from './header-target.ts';
import { responses } from './http1-target.ts';
import { inboundMessages, scanner } from './json-target.ts';
import { outgoing, splicer } from './splice-target.ts';
import { events, lines, utf8Pieces } from './stream-target.ts';
import type { Target } from './target.ts';
import { uris } from './uri-target.ts';

export const targets: readonly Target[] = [
  scanner,
  inboundMessages,
  answerMessages,
  longAnswers,
  uris,
  splicer,
  outgoing,
  lines,
  events,
  utf8Pieces,
  frames,
  responses,
  headerValues,
  paramHeaders,
  configs,
];
