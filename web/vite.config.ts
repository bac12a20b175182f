import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { build, defineConfig, type Plugin, type Rollup } from 'vite';

/** The host that `npm run dev` talks to. */
const host = process.env['GROVE_URL'] ?? 'http://127.0.0.1:4747';

// Proofs are for the host's own address, which the page then does not have.
process.env['VITE_GROVE_URL'] = host;

/**
 * Adds the service worker to the build, as `sw.js` at the root: one file under a name that stays, which knows the names of all others.
 * It has a build of its own, since a worker that imports shares no files with the page in every browser.
 */
function serviceWorker(): Plugin {
  return {
    name: 'grove-service-worker',
    apply: 'build',
    enforce: 'post',
    async generateBundle(_options, bundle) {
      const files = Object.values(bundle).filter((file) => file.fileName !== 'index.html');
      const chunks = files.filter((file): file is Rollup.OutputChunk => file.type === 'chunk');
      const first = chunks.filter((chunk) => chunk.isEntry).flatMap((chunk) => [chunk.fileName, ...chunk.imports]);
      const isStart = (file: Rollup.OutputChunk | Rollup.OutputAsset): boolean =>
        first.includes(file.fileName) || (file.type === 'asset' && file.fileName.endsWith('.css'));
      const folder = fileURLToPath(new URL('public', import.meta.url));
      const fixed = readdirSync(folder).filter((name) => !name.startsWith('.'));
      const start = [...files.filter(isStart).map((file) => file.fileName), ...fixed].sort();
      const later = files.map((file) => file.fileName).filter((name) => !start.includes(name));
      const hash = createHash('sha256').update(JSON.stringify([start, later.sort()]));
      for (const name of fixed) hash.update(readFileSync(`${folder}/${name}`));
      const shell = { version: hash.digest('hex').slice(0, 16), start, later };
      const built = (await build({
        configFile: false,
        logLevel: 'warn',
        publicDir: false,
        define: { __GROVE_SHELL__: JSON.stringify(shell) },
        build: {
          write: false,
          target: 'es2022',
          modulePreload: false,
          rollupOptions: {
            input: fileURLToPath(new URL('src/sw/worker.ts', import.meta.url)),
            output: { format: 'iife', inlineDynamicImports: true },
          },
        },
      })) as Rollup.RollupOutput;
      this.emitFile({ type: 'asset', fileName: 'sw.js', source: built.output[0].code });
    },
  };
}

export default defineConfig({
  // Relative addresses, so that the page also works under a path of somebody else's server.
  base: './',
  define: { __GROVE_CHECK_OFF__: '""' },
  plugins: [svelte(), serviceWorker()],
  build: {
    target: 'es2022',
    // The page is served with a Content-Security-Policy that knows neither inline scripts nor inline styles nor data:.
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
  },
  server: {
    proxy: {
      '/proof': { target: host, changeOrigin: true, headers: { origin: host } },
      '/ws': { target: host, ws: true, changeOrigin: true, headers: { origin: host } },
    },
  },
});
