/** What the fixtures ask for, in either era: the params of elicitations and samplings. */

export const text = (value) => ({ content: [{ type: 'text', text: value }] });

/** A form with one required property. */
export const formOf = (message, name, type) => ({
  message,
  requestedSchema: { type: 'object', properties: { [name]: { type } }, required: [name] },
});

export const sampleOf = (prompt, maxTokens) => ({
  messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
  maxTokens,
});

/** The arguments of a tool with one required string. */
export const argumentsOf = (name) => ({
  type: 'object',
  properties: { [name]: { type: 'string' } },
  required: [name],
});

/** The form of `test_elicitation`. */
export const contactSchema = {
  type: 'object',
  properties: {
    username: { type: 'string', description: "User's response" },
    email: { type: 'string', description: "User's email address" },
  },
  required: ['username', 'email'],
};

const option = (value, title) => ({ const: value, title });
const plainOptions = ['option1', 'option2', 'option3'];

/** The properties of the forms of SEP-1034 (defaults) and SEP-1330 (enums), by the tool that asks them. */
export const sepForms = {
  test_elicitation_sep1034_defaults: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
  test_elicitation_sep1330_enums: {
    untitledSingle: { type: 'string', enum: plainOptions },
    titledSingle: {
      type: 'string',
      oneOf: [option('value1', 'First Option'), option('value2', 'Second Option')],
    },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2'], enumNames: ['Option One', 'Option Two'] },
    untitledMulti: { type: 'array', items: { type: 'string', enum: plainOptions } },
    titledMulti: {
      type: 'array',
      items: { anyOf: [option('value1', 'First Choice'), option('value2', 'Second Choice')] },
    },
  },
};

export const sepForm = (properties) => ({
  message: 'Please review',
  requestedSchema: { type: 'object', properties, required: [] },
});
