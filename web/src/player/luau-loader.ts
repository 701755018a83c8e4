// Loads the browser's Luau VM (web/luau, built into src/wasm by `cargo xtask luau`). Globs, because neither the wasm
// file nor a build without scripts may break the site.
import type { ScriptHost } from './scripthost';
import type { Runtime } from './scripts';

interface RuntimeModule {
  ScriptRuntime: { load(wasmUrl: string, host: ScriptHost): Promise<Runtime> };
}

const modules = import.meta.glob<RuntimeModule>('./luau/runtime.ts');
const binaries = import.meta.glob<string>('../wasm/luau.wasm', { query: '?url', import: 'default' });

export async function loadLuau(host: ScriptHost): Promise<Runtime> {
  const [loadModule] = Object.values(modules);
  const [loadUrl] = Object.values(binaries);
  if (!loadModule || !loadUrl) throw new Error('this build of the site has no Luau VM; run `cargo xtask luau` and build again');
  const [{ ScriptRuntime }, url] = await Promise.all([loadModule(), loadUrl()]);
  return ScriptRuntime.load(url, host);
}
