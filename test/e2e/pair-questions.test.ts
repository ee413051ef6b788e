/** What servers of both eras ask in the middle of calls, put to clients of all revisions. */
import { describe, expect, test, vi } from 'vitest';
import { type Answerer, type Exchanged, everyCapability, type PairClient } from '../support/pair-clients.ts';
import { describePairs } from '../support/pairs.ts';

const sampled = (text: string) => ({ role: 'assistant', content: { type: 'text', text }, model: 'm' });
const roots = { roots: [{ uri: 'file:///callers' }] };
const accepted = { action: 'accept', content: { answer: 'Ann' } };

const answers: Readonly<Record<string, object>> = {
  'sampling/createMessage': sampled('Said'),
  'elicitation/create': accepted,
  'roots/list': roots,
};
const answer: Answerer = ({ method = '' }) => answers[method] ?? new Error(method);

/** What the server got for all that it asked. */
const heard = ({ response }: Exchanged): unknown => {
  const [block] = (response.result?.['content'] ?? []) as { text: string }[];
  if (block === undefined) throw new Error(JSON.stringify(response));
  return JSON.parse(block.text);
};

const configOf = (server: object): object => ({
  servers: {
    up: { ...server, roots: ['file:///configured'] },
    own: { ...server, isolation: 'caller', roots: ['file:///configured'] },
  },
});

describePairs(
  'what a server asks',
  (pair) => {
    const { kind, upstream } = pair;
    const isModern = kind.version === '2026-07-28';
    const hasForms = kind.version >= '2025-06-18';
    const hasUrls = kind.version >= '2025-11-25';

    /** Waits until a question comes through each process, in one of which a call may not have ended yet. */
    const untilAskedAgain = (): Promise<void> =>
      vi.waitFor(
        async () => {
          for (let process = 0; process < kind.processes; process++) {
            const next = await pair.client.call('interview', { kinds: 'sampling' }, answer);
            expect(heard(next)).toEqual([sampled('Said')]);
          }
        },
        { timeout: 30_000 },
      );

    test('in several rounds is answered in each', async () => {
      const args = { kinds: 'sampling', rounds: 3 };
      let count = 0;
      const exchanged = await pair.client.call('interview', args, () => sampled(`answer ${++count}`));
      expect(heard(exchanged)).toEqual([sampled('answer 1'), sampled('answer 2'), sampled('answer 3')]);
      const texts = exchanged.questions.map(({ params }) => JSON.stringify(params?.['messages']));
      expect(texts).toEqual(
        [1, 2, 3].map((round) => expect.stringContaining(`"text":"Round ${round}"`) as string),
      );
    });

    test.runIf(hasForms)('is filled in as a form, beside what it asks at the same time', async () => {
      const exchanged = await pair.client.call('interview', { kinds: 'elicitation,sampling' }, answer);
      expect(heard(exchanged)).toEqual([accepted, sampled('Said')]);
      const form = exchanged.questions.find(({ method }) => method === 'elicitation/create');
      expect(form?.params).toMatchObject({
        message: 'Round 1',
        requestedSchema: { type: 'object', properties: { answer: { type: 'string' } } },
      });
    });

    test.runIf(hasForms).each(['decline', 'cancel'])('hears of a %s', async (action) => {
      const args = { kinds: 'elicitation' };
      expect(heard(await pair.client.call('interview', args, () => ({ action })))).toEqual([{ action }]);
    });

    test.runIf(hasUrls)('sends the user to a URL, under an id where the revision has one', async () => {
      const exchanged = await pair.client.call('interview', { kinds: 'url' }, () => ({ action: 'accept' }));
      expect(heard(exchanged)).toEqual([{ action: 'accept' }]);
      const [question] = exchanged.questions;
      expect(question?.params).toMatchObject({ mode: 'url', url: 'https://example.com/consent' });
      const id: unknown = isModern ? undefined : expect.any(String);
      expect(question?.params?.['elicitationId']).toEqual(id);
    });

    const withoutAny = [
      ['sampling', -32601],
      ['elicitation', -32602],
      ['url', -32602],
      ['roots', -32601],
    ] as const;
    let bare: Promise<PairClient> | undefined;
    test.runIf(kind.transport === 'http').each(withoutAny)(
      'is not put to a client that did not declare it: %s',
      async (kinds, code) => {
        bare ??= pair.gateway.connect({});
        const exchanged = await (await bare).call('interview', { kinds });
        expect(exchanged.questions).toEqual([]);
        if (upstream.era === 'modern') expect(exchanged.response.error?.code).toBe(-32021);
        // A legacy server hears so, and may do without; its roots are those of the config.
        else if (kinds !== 'roots') expect(heard(exchanged)).toEqual([{ error: code }]);
      },
    );

    test.runIf(!hasUrls)('is not put to a client whose revision does not have it', async () => {
      const exchanged = await pair.client.call('interview', { kinds: 'url' });
      expect(exchanged.questions).toEqual([]);
      if (upstream.era === 'legacy') expect(heard(exchanged)).toEqual([{ error: -32602 }]);
      else expect(exchanged.response.error?.code).toBe(-32021);
    });

    test.runIf(!isModern)(
      'and its client refuses with an error, ends the call, and the next one goes on',
      async () => {
        const refuse: Answerer = () => new Error('Not today');
        const { response } = await pair.client.call('interview', { kinds: 'sampling' }, refuse);
        expect(response.result).toMatchObject({ isError: true });
        // The server may read the next call together with the refusal, and ask before it ends the first.
        await untilAskedAgain();
      },
    );

    describe('of roots', () => {
      const isCallers = upstream.era === 'modern';

      test(`on a shared server is answered ${isCallers ? 'by the caller' : 'from the config'}`, async () => {
        const said = heard(await pair.client.call('interview', { kinds: 'roots' }, answer));
        expect(said).toEqual([isCallers ? roots : { roots: [{ uri: 'file:///configured' }] }]);
      });

      // Modern clients over HTTP without a key can't be told apart.
      const isOnes = isCallers || !isModern || kind.transport === 'stdio';

      test(`on an isolated server is answered ${isOnes ? 'by the caller' : 'from the config'}`, async () => {
        const params = { name: 'own__interview', arguments: { kinds: 'roots' } };
        const said = heard(await pair.client.run('tools/call', params, answer));
        expect(said).toEqual([isOnes ? roots : { roots: [{ uri: 'file:///configured' }] }]);
      });
    });

    test.runIf(hasUrls)(
      'sends the user to the same URL once, and again where the revision says so',
      async () => {
        const args = { kinds: 'url', rounds: 2 };
        const exchanged = await pair.client.call('interview', args, () => ({ action: 'accept' }));
        expect(heard(exchanged)).toEqual([{ action: 'accept' }, { action: 'accept' }]);
        expect(exchanged.questions).toHaveLength(isModern ? 2 : 1);
      },
    );

    test('leaves its progress increasing for a client that knows one request of all rounds', async () => {
      const args = { kinds: 'sampling', rounds: 2 };
      const exchanged = await pair.client.call('interview', args, answer, { progressToken: 'p' });
      const values = exchanged.notifications.map(({ params }) => params?.['progress']);
      if (isModern) expect(values.slice(0, 2)).toEqual([1, 2]);
      else expect(values).toEqual([1, 2]);
    });

    test('is put again once the server has answered a call that was cancelled', async () => {
      const params = {
        name: 'up__progress',
        arguments: { steps: 3, everyMs: 20 },
        _meta: { progressToken: 'p' },
      };
      const opened = await pair.client.open('tools/call', params);
      await opened.next();
      await opened.cancel();
      await untilAskedAgain();
    });

    test.runIf(!isModern)('is taken back when its call is cancelled, which the server hears', async () => {
      const params = { name: 'up__interview', arguments: { kinds: 'sampling' } };
      // Its server never answers what was cancelled, so that nothing else could be asked there.
      const client = await (await pair.startOwn()).connect(everyCapability);
      const opened = await client.open('tools/call', params);
      const question = await opened.next();
      expect(question.method).toBe('sampling/createMessage');
      await opened.cancel();
      const taken = await opened.next();
      expect(taken).toMatchObject({
        method: 'notifications/cancelled',
        params: { requestId: question.id },
      });
    });
  },
  configOf,
);
