/** All scenarios, in the order in which they run. */
import { callScenarios } from './scenarios/calls.mjs';
import { heapScenarios } from './scenarios/heap.mjs';
import { listScenarios } from './scenarios/lists.mjs';
import { matrixScenarios } from './scenarios/matrix.mjs';
import { memoryScenarios } from './scenarios/memory.mjs';
import { peerScenarios } from './scenarios/peers.mjs';
import { scaleScenarios } from './scenarios/scale.mjs';
import { startScenarios } from './scenarios/start.mjs';
import { workerScenarios } from './scenarios/workers.mjs';

export const scenarios = [
  ...callScenarios,
  ...listScenarios,
  ...peerScenarios,
  ...startScenarios,
  ...memoryScenarios,
  ...heapScenarios,
  ...scaleScenarios,
  ...workerScenarios,
  ...matrixScenarios,
];
