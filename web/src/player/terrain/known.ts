// Terrain queries against the client core, for scripts, the camera and tests.
import { type ClientCore, terrainMaterials } from '../core/core';
import type { TerrainHost, Triple } from '../luau/host';

/** Error codes of refused terrain edits; scripts show their own message. */
export const TERRAIN_REFUSALS = new Set([
  'protected',
  'occupied',
  'out_of_reach',
  'not_editable',
  'forbidden_material',
  'too_large',
]);

export class KnownTerrain implements TerrainHost {
  constructor(private readonly core: () => ClientCore | undefined) {}

  exists(): boolean {
    return (this.core()?.terrain_info().length ?? 0) > 0;
  }

  info(): { min: Triple; max: Triple; block: number } {
    const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, block = 1] = this.core()?.terrain_info() ?? [];
    return { min: [a, b, c], max: [d, e, f], block };
  }

  block([x, y, z]: Triple): string {
    return this.core()?.terrain_block(x, y, z) ?? '';
  }

  water({ x, y, z }: { x: number; y: number; z: number }): boolean {
    return this.core()?.terrain_water(x, y, z) ?? false;
  }

  height(x: number, z: number): number | null {
    return this.core()?.terrain_height(x, z) ?? null;
  }

  raycast(
    origin: Triple,
    direction: Triple,
    max: number,
  ): { distance: number; normal: Triple; block: Triple; material: string } | null {
    const hit = this.core()?.terrain_raycast(new Float32Array([...origin, ...direction]), max);
    if (!hit || hit.length < 8) return null;
    const [distance = 0, nx = 0, ny = 0, nz = 0, x = 0, y = 0, z = 0, number = 0] = hit;
    return { distance, normal: [nx, ny, nz], block: [x, y, z], material: terrainMaterials()[number]?.name ?? '' };
  }

  request(op: string, center: Triple, size: number[], material: string | null): void {
    this.core()?.terraform(op, new Float32Array(center), new Float32Array(size), material ?? undefined);
  }
}
