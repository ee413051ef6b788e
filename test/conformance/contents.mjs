/** The fixtures' prompts and resources, in either era. */
import { z } from 'zod';
import { redPixelPng } from './samples.mjs';

const says = (content) => ({ role: 'user', content });
const saysText = (text) => says({ type: 'text', text });
const startingWith = (words) => (value) => words.filter((word) => word.startsWith(value));

/** Registers the suite's prompts that need no input; `promptArguments` makes a schema of properties, as the package wants it. */
export function registerPrompts(server, { completable, promptArguments }) {
  server.registerPrompt('test_simple_prompt', { description: 'A prompt without arguments' }, () => ({
    messages: [saysText('This is a simple prompt for testing.')],
  }));
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description: 'A prompt with two arguments',
      argsSchema: promptArguments({
        arg1: completable(
          z.string().describe('First test argument'),
          startingWith(['paris', 'park', 'party', 'test']),
        ),
        arg2: z.string().describe('Second test argument'),
      }),
    },
    ({ arg1, arg2 }) => ({
      messages: [saysText(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
    }),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    {
      description: 'A prompt with a resource inside',
      argsSchema: promptArguments({ resourceUri: z.string().describe('URI of the resource to embed') }),
    },
    ({ resourceUri }) => ({
      messages: [
        says({
          type: 'resource',
          resource: {
            uri: resourceUri,
            mimeType: 'text/plain',
            text: 'Embedded resource content for testing.',
          },
        }),
        saysText('Please process the embedded resource above.'),
      ],
    }),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'A prompt with an image' }, () => ({
    messages: [
      says({ type: 'image', data: redPixelPng, mimeType: 'image/png' }),
      saysText('Please analyze the image above.'),
    ],
  }));
}

/** Registers the suite's resources and its template. */
export function registerResources(server, { ResourceTemplate }) {
  const resource = (name, uri, mimeType, body) =>
    server.registerResource(name, uri, { description: `The ${name}`, mimeType }, () => ({
      contents: [{ uri, mimeType, ...body }],
    }));
  resource('static text', 'test://static-text', 'text/plain', {
    text: 'This is the content of the static text resource.',
  });
  resource('static binary', 'test://static-binary', 'image/png', { blob: redPixelPng });
  resource('watched resource', 'test://watched-resource', 'text/plain', { text: 'Watched resource content' });
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', {
      list: undefined,
      complete: { id: startingWith(['123', '124', '200']) },
    }),
    { description: 'A resource for every id', mimeType: 'application/json' },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
        },
      ],
    }),
  );
}
