/** All scenarios, in the order in which they run. */
import { callScenarios } from './scenarios/calls.mjs';

export const scenarios = [...callScenarios];
