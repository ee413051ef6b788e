import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { parseConfig } from '../../src/config/parse.ts';
import { root } from '../docs/markdown.ts';
import { deploy, leaveOut, runTool } from './tools.ts';

interface Meta {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Labels };
}
type Labels = Readonly<Record<string, string>>;

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Container {
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly env: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string } };
  }[];
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
  readonly securityContext: object;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Pod {
  readonly containers: readonly [Container];
  readonly securityContext: object;
  readonly terminationGracePeriodSeconds: number;
  readonly volumes: readonly { readonly name: string; readonly configMap?: { readonly name: string } }[];
}

const folder = join(deploy, 'kubernetes');
const kustomization = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8')) as {
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { readonly name: string; readonly files: readonly string[] }[];
};
const objects = kustomization.resources.flatMap((file) =>
  parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((document) => document.toJS() as Meta),
);

function only<T>(kind: string, name = 'mcpyard'): T {
  const [found, ...more] = objects.filter((each) => each.kind === kind && each.metadata.name === name);
  if (found === undefined || more.length > 0) throw new Error(`not one ${kind} ${name}`);
  return (found as Meta & { readonly spec: T }).spec;
}

const deployment = only<{
  readonly selector: { readonly matchLabels: Labels };
  readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod };
}>('Deployment');
const pod = deployment.template.spec;
const [container] = pod.containers;
const portNames = container.ports.map(({ name }) => name);
const configText = readFileSync(join(folder, 'config.yaml'), 'utf8');
const config = parseConfig(configText, {
  file: '/etc/mcpyard/config.yaml',
  env: {
    POD_NAMESPACE: 'tools',
    MCPYARD_SECRET: 'x'.repeat(40),
    MCPYARD_KEY_HASH: `sha256:${'0'.repeat(64)}`,
    MCPYARD_METRICS_TOKEN: 'y'.repeat(40),
  },
  readSecretFile: () => 'z',
});

describe('the Kubernetes base', () => {
  test('has every manifest of its folder, and the config', () => {
    const files = readdirSync(folder).filter((file) => file !== 'kustomization.yaml');
    const named = [
      ...kustomization.resources,
      ...kustomization.configMapGenerator.flatMap((each) => each.files),
    ];
    expect(named.toSorted()).toEqual(files.toSorted());
    expect(objects.map(({ kind }) => kind).toSorted()).toEqual([
      'Deployment',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'Service',
      'Service',
      'ServiceMonitor',
    ]);
  });

  test('selects its pods, and its services, by labels that they have', () => {
    const { labels } = deployment.template.metadata;
    const selectors = [
      deployment.selector.matchLabels,
      only<{ selector: Labels }>('Service').selector,
      only<{ selector: Labels }>('Service', 'mcpyard-admin').selector,
      only<{ selector: { matchLabels: Labels } }>('PodDisruptionBudget').selector.matchLabels,
      only<{ podSelector: { matchLabels: Labels } }>('NetworkPolicy').podSelector.matchLabels,
    ];
    for (const selector of selectors) {
      expect(Object.keys(selector).length).toBeGreaterThan(0);
      expect(labels).toMatchObject(selector);
    }
    const monitored = only<{ selector: { matchLabels: Labels } }>('ServiceMonitor').selector.matchLabels;
    const matching = objects.filter(
      ({ kind, metadata }) =>
        kind === 'Service' &&
        Object.entries(monitored).every(([label, value]) => metadata.labels[label] === value),
    );
    expect(matching.map(({ metadata }) => metadata.name)).toEqual(['mcpyard-admin']);
  });

  test('names only ports that the container and the services have', () => {
    const services = ['mcpyard', 'mcpyard-admin'].flatMap(
      (name) => only<{ ports: readonly { name: string; targetPort: string }[] }>('Service', name).ports,
    );
    const { endpoints } = only<{ endpoints: readonly { port: string }[] }>('ServiceMonitor');
    const { ingress } = only<{ ingress: readonly { ports: readonly { port: string }[] }[] }>('NetworkPolicy');
    expect(services.map(({ targetPort }) => targetPort).toSorted()).toEqual(portNames.toSorted());
    expect(endpoints.map(({ port }) => port)).toEqual(['admin']);
    expect(ingress.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual(portNames);
    expect([container.livenessProbe, container.readinessProbe].map(({ httpGet }) => httpGet)).toEqual([
      { path: '/healthz', port: 'admin' },
      { path: '/readyz', port: 'admin' },
    ]);
  });

  test('may do nothing as root and write only to its own volumes', () => {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const mounts = new Set(container.volumeMounts.map(({ name }) => name));
    expect([...mounts].toSorted()).toEqual(pod.volumes.map(({ name }) => name).toSorted());
    const dockerfile = readFileSync(join(deploy, 'docker/Dockerfile'), 'utf8');
    const paths = container.volumeMounts.map(({ mountPath }) => mountPath);
    expect(paths).toContain(/STATE_DIRECTORY=(\S+)/.exec(dockerfile)?.[1]);
    expect(paths).toContain(/HOME=(\S+)/.exec(dockerfile)?.[1]);
  });

  test('gives the gateway longer than its drain, what comes before and the end of children take', () => {
    const beforeSeconds = Number(container.lifecycle.preStop.exec.command.at(-1));
    const drainSeconds = (config.drainTimeoutMs ?? 25_000) / 1_000;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(beforeSeconds + drainSeconds + 5);
  });

  test('has a config that mcpyard takes, on the ports of the container, and that needs keys', () => {
    expect(portNames.map((name) => (name === 'mcp' ? config.listen : config.admin).port)).toEqual(
      container.ports.map(({ containerPort }) => containerPort),
    );
    expect(Object.keys(config.keys)).toEqual(['clients']);
    expect(config.auth).toBe('keys');
    expect(config.hosts).toContain('mcpyard.tools.svc');
  });

  test('holds no secret, but refers to them', () => {
    const named = [...configText.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name);
    const given = container.env.map(({ name }) => name);
    expect([...new Set(named)].toSorted()).toEqual(given.toSorted());
    expect(container.env.filter(({ value }) => value !== undefined)).toEqual([]);
    const keys = container.env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []);
    expect(keys).toHaveLength(3);
    expect(new Set(keys.map(({ name }) => name))).toEqual(new Set(['mcpyard']));
    const guide = readFileSync(join(root, 'docs/operations.md'), 'utf8');
    for (const { key } of keys) expect(guide).toContain(`--from-literal=${key}=`);
  });
});

const modules: Readonly<Record<string, string>> = {
  v1: 'kubernetes-models/v1',
  'apps/v1': 'kubernetes-models/apps/v1',
  'policy/v1': 'kubernetes-models/policy/v1',
  'networking.k8s.io/v1': 'kubernetes-models/networking.k8s.io/v1',
  'monitoring.coreos.com/v1': '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1',
};
const moduleOf = ({ apiVersion, kind }: Meta): string => `${modules[apiVersion]}/${kind}`;

const hasSchemas = ['kubernetes-models', '@kubernetes-models/prometheus-operator'].every((name) =>
  existsSync(join(root, 'node_modules', name)),
);
if (!hasSchemas)
  leaveOut(
    'the Kubernetes manifests against the schemas',
    'npm install --no-save kubernetes-models@4.5.1 @kubernetes-models/prometheus-operator@4.4.4',
  );

type Model = new (data: unknown) => { validate(): void };

/** Throws where the schema of its kind refuses an object. */
function validate(object: Meta): void {
  const models = createRequire(import.meta.url)(moduleOf(object)) as Readonly<Record<string, Model>>;
  const Kind = models[object.kind];
  if (Kind === undefined) throw new Error(`no model of ${object.kind}`);
  new Kind(object).validate();
}

/** What the compiler has against the objects: the schemas let unknown fields pass, the types don't. */
function unknownFields(all: readonly Meta[]): string {
  const place = mkdtempSync(join(tmpdir(), 'kubernetes-'));
  const file = join(place, 'objects.ts');
  const typed = all.map((object, at) => {
    const from = join(root, 'node_modules', moduleOf(object));
    const text = JSON.stringify(object);
    return `import type { I${object.kind} as I${at} } from '${from}';\nexport const o${at}: I${at} = ${text};\n`;
  });
  writeFileSync(file, typed.join(''));
  const options =
    '--ignoreConfig --noEmit --strict --skipLibCheck --module esnext --moduleResolution bundler'.split(' ');
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = runTool(process.execPath, [tsc, ...options, file]);
  rmSync(place, { recursive: true, force: true });
  return stdout;
}

describe.skipIf(!hasSchemas)('the schemas of Kubernetes', () => {
  test.each(objects.map((object) => [object.kind, object.metadata.name, object] as const))(
    'take the %s %s',
    (_kind, _name, object) => expect(() => validate(object)).not.toThrow(),
  );

  test('know every field of all manifests', () => {
    expect(unknownFields(objects)).toBe('');
  });

  test('would not take a wrong type, nor a field that there is not', () => {
    const [first] = objects.filter(({ kind }) => kind === 'Deployment');
    const { metadata, ...rest } = first ?? ({} as Meta);
    const wrong = { ...rest, metadata, spec: { ...deployment, replicas: 'one' } };
    expect(() => validate(wrong)).toThrow(/replicas/);
    const strange = { ...rest, metadata, spec: { ...deployment, replicaz: 1 } };
    expect(unknownFields([strange])).toContain('replicaz');
  });
});
