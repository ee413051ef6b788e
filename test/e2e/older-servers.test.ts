/** What servers of older revisions are told in words that they know. */
import { expect, test } from 'vitest';
import { describeEras } from '../support/eras.ts';
import { clientKinds } from '../support/pair-clients.ts';

const text = (said: string) => ({ type: 'text', text: said });
const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' };

describeEras(
  'a server of 2025-06-18',
  ({ start }) => {
    test.each([
      ['one block', [text('a')], { content: text('a') }],
      ['several texts as one', [text('a'), text('b')], { content: text('a\nb') }],
      ['an error where several are not all text', [text('a'), image], { error: expect.any(Number) }],
    ])('gets of a sampling %s', async (_, content, heard) => {
      const upstream = await start({ args: ['--version', '2025-06-18'] });
      const [kind] = clientKinds;
      const gateway = await kind?.start({ servers: { up: upstream.server } });
      const client = await gateway?.connect();
      const sampled = { role: 'assistant', model: 'm', content };
      const exchanged = await client?.call('interview', { kinds: 'sampling' }, () => sampled);
      const [block] = (exchanged?.response.result?.['content'] ?? []) as { text: string }[];
      expect(JSON.parse(block?.text ?? '')).toMatchObject([heard]);
      await gateway?.stop();
    });
  },
  'legacy',
);
