import { describe, expect, test } from 'vitest';
import { fillText } from '../../src/config/fill.ts';
import { translate, variableName, variablesIn } from '../../src/config/import-references.ts';

const inputs = new Map([
  ['github-token', { description: 'GitHub token' }],
  ['region', { default: 'eu' }],
  ['odd', { default: 'a}b' }],
]);
const variableOf = (_id: string, wanted: string) => ({ name: wanted });
const project = { inputs, folder: '/home/ada/shop', variableOf };

describe('a reference of a client', () => {
  test.each([
    [`\${TOKEN}`, `\${TOKEN}`],
    [`a \${A:-b c} d`, `a \${A:-b c} d`],
    [`\${env:API_KEY}/x`, `\${API_KEY}/x`],
    [`Bearer \${input:github-token}`, `Bearer \${GITHUB_TOKEN}`],
    [`\${input:region}`, `\${REGION:-eu}`],
    [`\${input:odd}`, `\${ODD}`],
    [`\${input:unknown.id}`, `\${UNKNOWN_ID}`],
    [`\${userHome}/x\${/}y\${pathSeparator}z`, `\${HOME}/x/y/z`],
    [`\${workspaceFolder}/x`, '/home/ada/shop/x'],
    [`\${workspaceFolderBasename}`, 'shop'],
    [`\${config:my.setting}`, `\${CONFIG_MY_SETTING}`],
    [`\${command:pick}`, `\${COMMAND_PICK}`],
    [`\${env:ProgramFiles(x86)}`, `\${PROGRAM_FILES_X86}`],
    ['$5 and $HOME and {}', '$5 and $HOME and {}'],
  ])('%s becomes %s', (text, expected) => expect(translate(text, project).text).toBe(expected));

  test.each([`\${file:/etc/passwd}`, `\${`, `\${A:-\${B}`, `\${no name}`])(
    '%s, which means nothing there, means nothing here',
    (text) => {
      const filled = fillText(translate(text, project).text, {
        env: {},
        readSecretFile: () => 'planted-secret',
      });
      expect(filled.problems).toEqual([]);
      expect(filled.parts.map((part) => part.text).join('')).toBe(text);
    },
  );

  test('is told where it is not what it was', () => {
    expect(translate(`\${input:github-token}\${TOKEN}\${env:A}`, project)).toMatchObject({
      notes: [expect.stringMatching(/github-token.* GITHUB_TOKEN .*GitHub token/)],
    });
    expect(translate(`\${workspaceFolder}/a`, project).notes).toEqual([
      expect.stringContaining('/home/ada/shop'),
    ]);
  });

  test('to the folder of a project is a variable where no project is known', () => {
    const { text, notes } = translate(`\${workspaceFolder}/a`, { inputs, variableOf });
    expect(text).toBe(`\${WORKSPACE_FOLDER}/a`);
    expect(notes).toEqual([expect.stringContaining('WORKSPACE_FOLDER')]);
  });
});

test.each([
  ['github-token', 'GITHUB_TOKEN'],
  ['apiKey', 'API_KEY'],
  ['API_KEY', 'API_KEY'],
  ['path', 'INPUT_PATH'],
  ['home', 'INPUT_HOME'],
  ['1st', 'INPUT_1ST'],
  ['…', 'INPUT_'],
])('the variable for %s is %s', (id, name) => expect(variableName(id)).toBe(name));

test('the variables of a tree are those without a default, each once', () => {
  const tree = { a: [`\${A}\${B:-x}`, `$\${C}`], b: { c: `\${A} \${D}` }, d: 1, e: null };
  expect(variablesIn(tree)).toEqual(['A', 'D']);
});
