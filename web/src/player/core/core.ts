// The client core (crates/client-wasm) as the page sees it, and how it is loaded. wasm-bindgen writes its interface.
// The wasm module is built by `cargo xtask wasm` into src/wasm and is not in the repository; a glob lets the site be
// type-checked and tested without it.
import type * as Core from '../../generated/core';
import type { ClientCore, ReconnectPolicy } from '../../generated/core';
import type { TerrainMaterial } from '../../generated/TerrainMaterial';

export type { ClientCore, ReconnectPolicy, TerrainMesher } from '../../generated/core';

type CoreModule = typeof Core & {
  default(options: { module_or_path: string }): Promise<unknown>;
};

const modules = import.meta.glob<CoreModule>('../../wasm/frolic_client_wasm.js');
const binaries = import.meta.glob<string>('../../wasm/frolic_client_wasm_bg.wasm', {
  query: '?url',
  import: 'default',
});

let ready: Promise<CoreModule> | null = null;
let loaded: CoreModule | null = null;

/** Loads the wasm module once per page and makes a core. */
export async function loadCore(): Promise<ClientCore> {
  const { ClientCore } = await prepareCore();
  return new ClientCore();
}

/** The reconnect policy of a visit; only after a core was loaded. */
export function newReconnectPolicy(): ReconnectPolicy {
  if (!loaded) throw new Error('the client core is not loaded');
  return new loaded.ReconnectPolicy();
}

/** The materials of the ground; empty before the core is loaded. */
export function terrainMaterials(): TerrainMaterial[] {
  return materials;
}

let materials: TerrainMaterial[] = [];

/** Begins to load the wasm module, so that it is there when it is needed. */
export function prepareCore(): Promise<CoreModule> {
  ready ??= initialise();
  return ready;
}

async function initialise(): Promise<CoreModule> {
  const [loadModule] = Object.values(modules);
  const [loadUrl] = Object.values(binaries);
  if (!loadModule || !loadUrl)
    throw new Error('This build of the site has no client core. Run `cargo xtask wasm`, then build again.');
  const [module, url] = await Promise.all([loadModule(), loadUrl()]);
  await module.default({ module_or_path: url });
  materials = JSON.parse(module.terrain_materials()) as TerrainMaterial[];
  loaded = module;
  return module;
}
