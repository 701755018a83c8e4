// The first page stays small: everything that a browser must fetch before it shows the store, font included, as the
// server sends it, is under 100 KB. What is fetched later and while idle (other pages, three.js) does not count.
// Covers: web/src, crates/platform/src/site.rs
import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';

const BUDGET_BYTES = 100 * 1000;
const dist = path.resolve(import.meta.dirname, '../dist');

/** Transferred size: the brotli copy of the build, or the file itself if it has none. */
async function sent(file) {
  const packed = await stat(path.join(dist, `${file}.br`)).catch(() => null);
  return (packed ?? (await stat(path.join(dist, file)))).size;
}

/** The page, its scripts with static imports, its styles, and the Latin font. */
async function firstPage() {
  const html = await readFile(path.join(dist, 'index.html'), 'utf8');
  const files = new Set(['index.html']);
  const waiting = [...html.matchAll(/(?:src|href)="\/([^"]+)"/g)].map((match) => match[1]);
  while (waiting.length > 0) {
    const file = waiting.pop();
    if (files.has(file)) continue;
    files.add(file);
    if (!/\.(js|css)$/.test(file)) continue;
    const text = await readFile(path.join(dist, file), 'utf8');
    const folder = path.posix.dirname(file);
    if (file.endsWith('.js')) {
      for (const match of text.matchAll(
        /(?:^|[;}\s])(?:import|export)\s*(?:[\w*{}\s,$]+from\s*)?["'](\.[^"']+)["']/g,
      )) {
        waiting.push(path.posix.join(folder, match[1]));
      }
    } else {
      for (const match of text.matchAll(/url\((?:["']?)([^)"']*latin-wght[^)"']*|[^)"']+\.svg)(?:["']?)\)/g)) {
        if (!match[1].includes('latin-ext'))
          waiting.push(match[1].startsWith('/') ? match[1].slice(1) : path.posix.join(folder, match[1]));
      }
    }
  }
  return files;
}

test('the first page is under 100 KB, compressed, before three.js', async () => {
  const rows = await Promise.all([...(await firstPage())].map(async (file) => [file, await sent(file)]));
  rows.sort((a, b) => b[1] - a[1]);
  const total = rows.reduce((sum, [, bytes]) => sum + bytes, 0);
  const table = rows.map(([file, bytes]) => `${String(bytes).padStart(7)}  ${file}`).join('\n');
  console.info(`${table}\n${String(total).padStart(7)}  in all`);
  assert.ok(
    rows.some(([file]) => file.endsWith('.woff2')),
    'the font is counted',
  );
  assert.ok(rows.filter(([file]) => file.endsWith('.js')).length > 1, 'imports are followed');
  assert.ok(total < BUDGET_BYTES, `the first page takes ${total} bytes, more than ${BUDGET_BYTES}\n${table}`);
});
