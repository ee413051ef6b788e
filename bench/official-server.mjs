/** A stdio server made of the official classes, with one tool: as slow to start as servers are. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const server = new McpServer({ name: 'official', version: '1.0.0' });
server.registerTool('tool_0', { description: 'Says what it always says.' }, () => ({
  content: [{ type: 'text', text: 'always' }],
}));
await server.connect(new StdioServerTransport());
