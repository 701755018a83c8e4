// Loads the browser's Luau VM (web/luau, built into src/wasm by `cargo xtask luau`), when a world has client scripts.
// The wasm file is not in the repository; a glob lets the site be checked and built without it.
import type { ScriptHost } from './host';
import type { Runtime } from './scripts';

const binaries = import.meta.glob<string>('../../wasm/luau.wasm', { query: '?url', import: 'default' });

export async function loadLuau(host: ScriptHost): Promise<Runtime> {
  const [loadUrl] = Object.values(binaries);
  if (!loadUrl) throw new Error('this build of the site has no Luau VM; run `cargo xtask luau` and build again');
  const [{ ScriptRuntime }, { makeTools }, url] = await Promise.all([
    import('../luau/runtime'),
    import('./tools'),
    loadUrl(),
  ]);
  host.attach(makeTools(host.session));
  return ScriptRuntime.load(url, host);
}
