// Material components as three.js materials, shared between parts that look alike apart from their colour
// (colour lives in the vertices, so that parts of many colours are drawn in one call).
import { Color, FrontSide, type Material, MeshLambertMaterial, MeshStandardMaterial } from 'three';
import type { PartMaterial } from '../core/parts';
import { patternTexture } from './patterns';

export class MaterialLibrary {
  #materials = new Map<string, Material>();

  constructor(private readonly physical: boolean) {}

  /** Parts with the same key share a draw call. */
  key({ roughness, metalness, emissive, opacity, pattern }: PartMaterial): string {
    return [roughness.toFixed(2), metalness.toFixed(2), emissive, opacity.toFixed(2), pattern].join('|');
  }

  get(data: PartMaterial): Material {
    const key = this.key(data);
    let material = this.#materials.get(key);
    if (!material) this.#materials.set(key, (material = this.#make(data)));
    return material;
  }

  dispose(): void {
    for (const material of this.#materials.values()) material.dispose();
    this.#materials.clear();
  }

  #make({ roughness, metalness, emissive, opacity, pattern }: PartMaterial): Material {
    const shared = {
      vertexColors: true,
      side: FrontSide,
      map: patternTexture(pattern),
      transparent: opacity < 1,
      opacity,
      // Glass must not occlude objects that are drawn behind it later.
      depthWrite: opacity >= 1,
      emissive: new Color(emissive ?? '#000000'),
      emissiveIntensity: 0.9,
    };
    if (!this.physical) return new MeshLambertMaterial(shared);
    return new MeshStandardMaterial({ ...shared, roughness, metalness });
  }
}
