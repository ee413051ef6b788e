/** The limits that are counted, by the names that metrics and docs/limits.md have for them. */
export const limitNames = [
  'batch',
  'body',
  'cache',
  'callsInFlight',
  'childQueue',
  'connections',
  'listItems',
  'listenStreams',
  'listenUris',
  'liveSessions',
  'members',
  'metricLabels',
  'metricRows',
  'nesting',
  'pages',
  'parkedCalls',
  'passthrough',
  'result',
  'rounds',
  'sessionCalls',
  'sessionQuestions',
  'sessionStreams',
  'sessionSubscriptions',
  'sseBuffer',
  'upstreamCalls',
  'upstreamQueue',
  'upstreamQueueTime',
  'watchedResources',
] as const;

/** A limit of number or size at which something is refused, cut or dropped. */
export type Limit = (typeof limitNames)[number];
