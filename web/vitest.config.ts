import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  // `make test-checks` names the security check that is left out.
  define: { __GROVE_CHECK_OFF__: JSON.stringify(process.env['GROVE_CHECK_OFF'] ?? '') },
  plugins: [svelte({ hot: false })],
  resolve: { conditions: ['browser'] },
  test: {
    include: ['tests/unit/**/*.test.ts'],
    environment: 'node',
    // What counts is that it ends: on a machine that is busy, cases that are many take their time.
    testTimeout: 60_000,
  },
});
