/** Tasks of the extension io.modelcontextprotocol/tasks, kept in memory: what a server must have to hand them out. */
import { randomUUID } from 'node:crypto';

const ttlMs = 300_000;
const pollIntervalMs = 50;
const isOver = (status) => !['working', 'input_required'].includes(status);
const now = () => new Date().toISOString();

class Task {
  #changed;
  #abort = new AbortController();
  #head = { taskId: randomUUID(), createdAt: now(), ttlMs, pollIntervalMs };
  #status = 'working';
  #updatedAt = now();
  #outcome = {};
  #waiting = new Map();

  constructor(changed) {
    this.#changed = changed;
  }

  get id() {
    return this.#head.taskId;
  }

  /** Aborted by `cancel`. */
  get signal() {
    return this.#abort.signal;
  }

  /** What the result that creates it says. */
  seed() {
    return { ...this.#head, status: this.#status, lastUpdatedAt: this.#updatedAt };
  }

  /** What `tasks/get` and notifications say. */
  detailed() {
    if (this.#status !== 'input_required') return { ...this.seed(), ...this.#outcome };
    const open = [...this.#waiting].map(([key, { request }]) => [key, request]);
    return { ...this.seed(), inputRequests: Object.fromEntries(open) };
  }

  /** Asks the client; resolves with its response. */
  ask(key, request) {
    return new Promise((answer) => {
      this.#waiting.set(key, { request, answer });
      this.#become('input_required');
    });
  }

  update(responses) {
    for (const [key, response] of Object.entries(responses)) {
      const waiting = this.#waiting.get(key);
      this.#waiting.delete(key);
      waiting?.answer(response);
    }
    if (this.#status === 'input_required' && this.#waiting.size === 0) this.#become('working');
  }

  cancel() {
    this.#become('cancelled');
    this.#abort.abort();
  }

  run(work) {
    work(this).then(
      (result) => this.#become('completed', { result }),
      (error) => this.#become('failed', { error: { code: -32603, message: error.message } }),
    );
  }

  #become(status, outcome = {}) {
    if (isOver(this.#status)) return;
    this.#status = status;
    this.#outcome = outcome;
    this.#updatedAt = now();
    this.#changed(this);
  }
}

export class TaskStore {
  #tasks = new Map();
  #listeners = new Set();

  /** A new task whose result, or failure, is that of `work(task)`. */
  create(work) {
    const task = new Task((changed) => {
      for (const listener of this.#listeners) listener(changed);
    });
    this.#tasks.set(task.id, task);
    task.run(work);
    return task;
  }

  get(id) {
    return this.#tasks.get(id);
  }

  /** `listener` gets every task that changes; returns what ends it. */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
