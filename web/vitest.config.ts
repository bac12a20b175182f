import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte({ hot: false })],
  resolve: { conditions: ['browser'] },
  test: {
    include: ['tests/unit/**/*.test.ts'],
    environment: 'node',
    // What counts is that it ends: on a machine that is busy, cases that are many take their time.
    testTimeout: 60_000,
  },
});
