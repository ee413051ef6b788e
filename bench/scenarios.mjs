/** All scenarios, in the order in which they run. */
import { callScenarios } from './scenarios/calls.mjs';
import { peerScenarios } from './scenarios/peers.mjs';

export const scenarios = [...callScenarios, ...peerScenarios];
