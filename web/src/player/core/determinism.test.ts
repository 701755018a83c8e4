// The browser predicts with the same simulation as the server: 10,000 random steps must give the same digest in wasm
// as natively (crates/sim/digests.txt and digests-blocks.txt, checked by the sim crate's own test).
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

interface DeterminismModule {
  initSync(options: { module: BufferSource }): unknown;
  determinism_digest(seed: number, steps: number): string;
  mesh_digest(seed: number, steps: number): string;
  determinism_digest_on_blocks(seed: number, steps: number): string;
  determinism_digest_in_water(seed: number, steps: number): string;
}

const modules = import.meta.glob<DeterminismModule>('../../wasm/frolic_client_wasm.js');

test('the wasm simulation gives the native digests', async () => {
  const [load] = Object.values(modules);
  if (!load) throw new Error('src/wasm is empty; run `cargo xtask wasm` first');
  const core = await load();
  core.initSync({ module: readFileSync('src/wasm/frolic_client_wasm_bg.wasm') });
  const native = readFileSync('../crates/sim/digests.txt', 'utf8').trim().split('\n');
  expect(native).toHaveLength(3);
  expect(native.map((_, index) => core.determinism_digest(index + 1, 10_000))).toEqual(native);
  const meshes = readFileSync('../crates/sim/mesh-digest.txt', 'utf8').trim();
  expect(core.mesh_digest(1, 5_000)).toBe(meshes);
  // On voxel terrain that changes during the run.
  const onBlocks = readFileSync('../crates/sim/digests-blocks.txt', 'utf8').trim().split('\n');
  expect(onBlocks).toHaveLength(3);
  const swimming = readFileSync('../crates/sim/digest-swim.txt', 'utf8').trim();
  expect(core.determinism_digest_in_water(1, 10_000)).toBe(swimming);
  expect(onBlocks.map((_, index) => core.determinism_digest_on_blocks(index + 1, 5_000))).toEqual(onBlocks);
});
