/** Gateways whose metrics a test reads, in front of servers that it writes down. */
import { type Exposition, parseExposition } from '../observe/exposition-text.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { type Script, startScript } from './scripted.ts';

/** What has to end with the tests of a file, the last that was started first. */
type Ends = (() => unknown)[];

export async function end(ends: Ends): Promise<void> {
  for (const one of ends.splice(0).reverse()) await one();
}

/** Starts gateways and servers, and notes in `ends` what ends them. */
export function figuresOf() {
  const ends: Ends = [];
  return {
    ends,
    async gatewayOf(servers: object, more: object = {}): Promise<Gateway> {
      const gateway = await startGateway({ ...more, servers });
      ends.push(() => gateway.stop());
      return gateway;
    },
    async serverOf(script: Script): Promise<object> {
      const scripted = await startScript(script);
      ends.push(() => scripted.stop());
      return scripted.server;
    },
  };
}

/** What Prometheus would read now. */
export async function scrape({ admin }: Gateway): Promise<Exposition> {
  return parseExposition(await (await fetch(`${admin}/metrics`)).text());
}
