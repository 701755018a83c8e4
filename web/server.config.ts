// Build output for the server: the list of pages, so that it answers 404 for other paths,
// and a brotli copy of every larger file at the slowest setting, which is too slow per request.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import type { Plugin } from 'vite';

const COMPRESSIBLE = /\.(js|css|html|json|svg|wasm)$/;
/** Below this size compression is not worth it. */
const BYTES_MIN = 256;

export function forTheServer(): Plugin {
  let folder = '';
  return {
    name: 'frolic-server-files',
    apply: 'build',
    configResolved(config) {
      folder = path.resolve(config.root, config.build.outDir);
    },
    generateBundle() {
      const source = readFileSync(path.join(import.meta.dirname, 'src/lib/pages.json'));
      this.emitFile({ type: 'asset', fileName: 'pages.json', source });
    },
    closeBundle() {
      for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
        if (COMPRESSIBLE.test(name)) compress(path.join(folder, name));
      }
    },
  };
}

function compress(file: string): void {
  const plain = readFileSync(file);
  if (plain.length < BYTES_MIN) return;
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 11,
    [constants.BROTLI_PARAM_SIZE_HINT]: plain.length,
    [constants.BROTLI_PARAM_LGWIN]: 22,
  };
  const small = brotliCompressSync(plain, { params });
  if (small.length < plain.length) writeFileSync(`${file}.br`, small);
}
