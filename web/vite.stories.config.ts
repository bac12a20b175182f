import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

/** The story page (`dev/`), for work on components. It is not part of what a host serves. */
export default defineConfig({
  root: 'dev',
  define: { __GROVE_CHECK_OFF__: '""' },
  plugins: [svelte()],
  server: { fs: { allow: ['..'] } },
});
