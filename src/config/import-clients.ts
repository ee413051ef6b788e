/** The files in which MCP clients keep their servers, and what of each form is read. */
import path from 'node:path';
import { isTree, type Tree } from './tree.ts';

/** A server as a client has it. */
export interface ClientServer {
  readonly name: string;
  readonly entry: unknown;
}

/** What VS Code asks its user for, by id. */
export interface Input {
  readonly description?: string;
  readonly default?: string;
}

export interface ClientFile {
  /** Whose file it is, in words. */
  readonly client: string;
  readonly servers: readonly ClientServer[];
  readonly inputs: ReadonlyMap<string, Input>;
  /** The folder of the project that the file belongs to, where its servers run; absolute. */
  readonly folder?: string;
  readonly notes: readonly string[];
}

export interface ClientPlace {
  /** Absolute. */
  readonly file: string;
  readonly cwd: string;
  readonly home: string | undefined;
}

/** The project of `.mcp.json`, `.vscode/mcp.json` or `.cursor/mcp.json`; those of a home folder belong to none. */
function folderOf({ file, home }: ClientPlace): string | undefined {
  const directory = path.dirname(file);
  const isInside = ['.vscode', '.cursor'].includes(path.basename(directory));
  if (path.basename(file) !== (isInside ? 'mcp.json' : '.mcp.json')) return undefined;
  const folder = isInside ? path.dirname(directory) : directory;
  return folder === home ? undefined : folder;
}

function clientOf({ file }: ClientPlace, root: Tree): string {
  if (isTree(root['servers']) || isTree(root['mcp'])) return 'VS Code';
  const name = path.basename(file);
  if (name === 'claude_desktop_config.json') return 'Claude Desktop';
  if (name === '.mcp.json' || name === '.claude.json') return 'Claude Code';
  return path.basename(path.dirname(file)) === '.cursor' ? 'Cursor' : 'mcpServers';
}

function inputsOf(list: unknown): ReadonlyMap<string, Input> {
  const inputs = new Map<string, Input>();
  for (const input of Array.isArray(list) ? list : []) {
    if (!isTree(input) || typeof input['id'] !== 'string') continue;
    const { id, description, default: fallback } = input;
    inputs.set(id, {
      ...(typeof description === 'string' ? { description } : {}),
      ...(typeof fallback === 'string' ? { default: fallback } : {}),
    });
  }
  return inputs;
}

const isServer = (entry: unknown): boolean =>
  isTree(entry) && ['command', 'url'].some((key) => typeof entry[key] === 'string');

interface Found {
  readonly maps: readonly Tree[];
  readonly folder?: string;
  readonly notes?: readonly string[];
}

/** Claude Code keeps the servers of each project beside those of its user, under the folder of the project. */
function inProjects({ projects }: Tree, { cwd }: ClientPlace): Found {
  if (!isTree(projects)) return { maps: [] };
  const withServers = Object.entries(projects).flatMap(([folder, project]) => {
    const servers = isTree(project) ? project['mcpServers'] : undefined;
    return isTree(servers) && Object.keys(servers).length > 0 ? [{ folder, servers }] : [];
  });
  const others = withServers.filter(({ folder }) => folder !== cwd).map(({ folder }) => folder);
  return {
    maps: withServers.filter(({ folder }) => folder === cwd).map(({ servers }) => servers),
    folder: cwd,
    notes:
      others.length === 0
        ? []
        : [`servers of other projects are taken from within their folder: ${others.join(', ')}`],
  };
}

function findServers(root: Tree, place: ClientPlace): Found {
  const settings = isTree(root['mcp']) ? root['mcp'] : {};
  const maps = [root['mcpServers'], root['servers'], settings['servers']].filter(isTree);
  const local = inProjects(root, place);
  const { notes = [] } = local;
  if (local.maps.length > 0) return { ...local, maps: [...maps, ...local.maps] };
  if (maps.length > 0 || notes.length > 0) return { maps, notes };
  // The plugins of Claude Code have the servers alone.
  const entries = Object.values(root);
  return { maps: entries.length > 0 && entries.every(isServer) ? [root] : [] };
}

/** What a client's file has, or undefined where it is not one that is known. */
export function readClientFile(root: unknown, place: ClientPlace): ClientFile | undefined {
  if (!isTree(root)) return undefined;
  const { maps, notes = [], folder = folderOf(place) } = findServers(root, place);
  if (maps.length === 0 && notes.length === 0) return undefined;
  const settings = isTree(root['mcp']) ? root['mcp'] : {};
  return {
    client: clientOf(place, root),
    servers: maps.flatMap((map) => Object.entries(map).map(([name, entry]) => ({ name, entry }))),
    inputs: inputsOf(root['inputs'] ?? settings['inputs']),
    ...(folder === undefined ? {} : { folder }),
    notes,
  };
}
