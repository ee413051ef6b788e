/** The data of Server-Sent Events, for tests; not the parser of the gateway, which is under test. */

/** Takes bytes as they come and returns the data of each event that they complete; comments and other fields are skipped. */
export function createSseReader(): (chunk: Buffer) => string[] {
  let pending = Buffer.alloc(0);
  return (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    const complete: string[] = [];
    for (;;) {
      const end = /\r\n\r\n|\n\n|\r\r/.exec(pending.toString('latin1'));
      if (end === null) return complete;
      const event = pending.subarray(0, end.index).toString('utf8');
      pending = pending.subarray(end.index + end[0].length);
      const data = event
        .split(/\r\n|\n|\r/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(line.startsWith('data: ') ? 6 : 5));
      if (data.length > 0) complete.push(data.join('\n'));
    }
  };
}
