/** The limits that are counted, by the names that metrics and docs/limits.md have for them. */
export const limitNames = [
  'batch',
  'bodies',
  'body',
  'cache',
  'callsInFlight',
  'childQueue',
  'connections',
  'forwards',
  'headers',
  'instances',
  'listItems',
  'listenStreams',
  'listenTasks',
  'listenUris',
  'liveSessions',
  'members',
  'metricLabels',
  'metricRows',
  'nesting',
  'pages',
  'parkedCalls',
  'passthrough',
  'peerQueue',
  'result',
  'rounds',
  'sessionCalls',
  'sessionQuestions',
  'sessionStreams',
  'sessionSubscriptions',
  'sseBuffer',
  'stalled',
  'upstreamCalls',
  'upstreamQueue',
  'upstreamQueueTime',
  'watchedResources',
  'watchedTasks',
] as const;

/** A limit of number or size at which something is refused, cut or dropped. */
export type Limit = (typeof limitNames)[number];

/** What may be used of a limit here; several that share one never use more than it together. */
export interface Allowance {
  /** The whole limit, as errors name it. Another one holds from when it is set; what is in use beyond it ends by itself. */
  max: number;
  /** What is taken and was not given back. */
  readonly used: number;
  /** Whether there was room, which is then used until it is given back. */
  take(amount?: number): boolean;
  give(amount?: number): void;
  /** Nothing more is taken. */
  close(): void;
}
