/** The tools that the suite's scenarios for tasks ask for. */
import { setTimeout as sleep } from 'node:timers/promises';
import { formOf, text } from './forms.mjs';

const form = (...what) => ({ method: 'elicitation/create', params: formOf(...what) });
const string = { type: 'string' };
const failed = { ...text('It failed'), isError: true };

async function compute(task, { seconds = 0, label = 'work' }) {
  await sleep(seconds * 1000, undefined, { signal: task?.signal });
  return text(`Computed ${label}`);
}

async function confirmed(task, { filename }) {
  const response = await task.ask('confirm', form(`Delete ${filename}?`, 'confirm', 'boolean'));
  return text(response.content?.confirm === true ? `Deleted ${filename}` : `Kept ${filename}`);
}

async function bothAsked(task) {
  const responses = await Promise.all([
    task.ask('first', form('First?', 'name', 'string')),
    task.ask('second', form('Second?', 'name', 'string')),
  ]);
  return text(responses.map(({ content }) => content?.name).join(' and '));
}

async function failSoon() {
  await sleep(100);
  return failed;
}

async function breakSoon() {
  await sleep(100);
  throw new Error('The job broke');
}

/** By name: `schema` of the arguments, `work(task, args)` of the task, and `plain(args)` where it also runs without one. */
export const tools = {
  greet: { schema: { name: string }, plain: ({ name }) => text(`Hello, ${name}!`) },
  slow_compute: {
    schema: { seconds: { type: 'number' }, label: string },
    work: compute,
    plain: (args) => compute(undefined, args),
  },
  confirm_delete: { schema: { filename: string }, work: confirmed, plain: () => text('Nobody was asked') },
  multi_input: { schema: {}, work: bothAsked, plain: () => text('Nobody was asked') },
  failing_job: { schema: {}, work: failSoon },
  protocol_error_job: { schema: {}, work: breakSoon },
  test_tool_with_task: {
    schema: {},
    before: () => ({ inputRequests: { user_name: form('What is your name?', 'name', 'string') } }),
    work: async (_task, _args, responses) => text(`Hello, ${responses.user_name.content?.name}!`),
  },
};
