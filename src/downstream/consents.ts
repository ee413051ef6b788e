/** The URLs that the user of one call has consented to visit: consent says nothing of when the visit is over. */

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function urlOf(request: unknown): string | undefined {
  if (!isRecord(request) || request['method'] !== 'elicitation/create' || !isRecord(request['params']))
    return undefined;
  const { mode, url } = request['params'];
  return mode === 'url' && typeof url === 'string' ? url : undefined;
}

const accepted = { action: 'accept' } as const;

export class Consents {
  #urls: Set<string> | undefined;

  /** The answers where all that is asked was consented to before, or nothing is asked; undefined where the client must be. */
  givenTo(requests: Json): Json | undefined {
    const given: Record<string, unknown> = {};
    for (const [key, request] of Object.entries(requests)) {
      const url = urlOf(request);
      if (url === undefined || this.#urls?.has(url) !== true) return undefined;
      given[key] = accepted;
    }
    return given;
  }

  note(requests: Json, answers: Json): void {
    for (const [key, request] of Object.entries(requests)) {
      const url = urlOf(request);
      const answer = answers[key];
      if (url === undefined || !isRecord(answer) || answer['action'] !== 'accept') continue;
      this.#urls ??= new Set();
      this.#urls.add(url);
    }
  }
}
