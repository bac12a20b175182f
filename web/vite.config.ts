import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

/** The host that `npm run dev` talks to. */
const host = process.env['GROVE_URL'] ?? 'http://127.0.0.1:4747';

// Proofs are for the host's own address, which the page then does not have.
process.env['VITE_GROVE_URL'] = host;

export default defineConfig({
  // Relative addresses, so that the page also works under a path of somebody else's server.
  base: './',
  define: { __GROVE_CHECK_OFF__: '""' },
  plugins: [svelte()],
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
