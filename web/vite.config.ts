// Build of the site. Output goes to web/dist, which the `frolic` binary embeds.
// In dev, API calls are forwarded to a running `frolic serve`; changeOrigin, so that it offers direct transports.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';
import { forTheServer } from './server.config.ts';

const controlPlane = process.env.FROLIC_URL ?? 'http://127.0.0.1:5000';

export default defineConfig({
  plugins: [svelte(), forTheServer()],
  build: {
    target: 'es2022',
    // Inlined data: URLs would need wider CSP rules than `'self'`.
    assetsInlineLimit: 0,
    // three.js alone exceeds the default warning threshold; only the play page loads it.
    chunkSizeWarningLimit: 800,
  },
  // The terrain worker is a separate module that loads the client core like the page.
  worker: { format: 'es' },
  server: {
    proxy: Object.fromEntries(
      ['/api', '/login', '/join', '/cdn', '/health'].map((path) => [
        path,
        { target: controlPlane, ws: true, changeOrigin: true },
      ]),
    ),
  },
  test: {
    environment: 'node',
    include: ['src/**/*.test.ts'],
    // Behavior is tested, not speed: a busy machine may take long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
