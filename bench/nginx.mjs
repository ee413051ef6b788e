/** nginx as the plain proxy that ratios are against. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from './free-port.mjs';
import { start } from './processes.mjs';

/** nginx's version; undefined where there is none. */
export function nginxVersion() {
  return /nginx\/(\S+)/.exec(spawnSync('nginx', ['-v'], { encoding: 'utf8' }).stderr ?? '')?.[1];
}

const nginxConfig = (folder, port, upstreamPort) => `
worker_processes 1; daemon off; master_process off; pid ${folder}/pid; error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off; tcp_nodelay on; keepalive_requests 1000000000; keepalive_timeout 600s;
  client_body_buffer_size 2m; client_max_body_size 64m; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  proxy_buffer_size 32k; proxy_buffers 64 32k; proxy_busy_buffers_size 256k;
  upstream mock { server 127.0.0.1:${upstreamPort}; keepalive 512; keepalive_requests 1000000000; keepalive_timeout 600s; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / { proxy_pass http://mock; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }
}
`;

/** One worker of nginx that passes straight through to a mock. */
export async function startNginx(bench, upstreamPort, { core = 'measured' } = {}) {
  const port = await freePort();
  const folder = bench.folder('nginx');
  const file = path.join(folder, 'nginx.conf');
  writeFileSync(file, nginxConfig(folder, port, upstreamPort));
  const argv = ['nginx', '-p', folder, '-c', file];
  const { pid } = await bench.started(start(argv, { core, ready: false }));
  await bench.untilOpen(port);
  const target = { name: 'nginx', port, path: '/u0/mcp', isModern: true, tools: ['tool_0'], pids: [pid] };
  return target;
}
