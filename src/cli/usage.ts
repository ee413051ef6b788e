/** What the table of commands and the commands themselves both say of how they are typed. */

/** How the command of a server is told apart from options of mcpyard. */
export const commandHint = 'A command goes behind --, as in: mcpyard add NAME -- COMMAND ARG…';

/** The usage of `mcpyard key`. */
export const keyUsage = 'key new NAME | list | remove NAME [--json]';

/** No command: what `serve` starts its workers with, which nobody can type. */
export const workerWord = '__worker';
