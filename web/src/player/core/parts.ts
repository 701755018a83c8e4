// The parts of the world: entities as the client core resolves them, with prefabs, parents, scale and the changes of
// scripts applied. The view draws them and client scripts read them.
import type { Part } from '../../generated/Part';
import type { PartChanges } from '../../generated/PartChanges';

export type { Part, PartChanges };
export type { PartLabel } from '../../generated/PartLabel';
export type { PartLight } from '../../generated/PartLight';
export type { PartMaterial } from '../../generated/PartMaterial';
export type { PartNpc } from '../../generated/PartNpc';
export type { PartPattern } from '../../generated/PartPattern';
export type { PartShape } from '../../generated/PartShape';

export type Vec3 = [number, number, number];

/** The known parts by id. */
export class PartMap extends Map<number, Part> {
  apply({ changed, removed }: PartChanges): void {
    for (const part of changed) this.set(part.id, part);
    for (const id of removed) this.delete(id);
  }
}

/** Whether two versions of a part look the same wherever they are: then only what scripts read has changed. */
export function looksLike(a: Part, b: Part): boolean {
  const looks = ({ shape, material, light, label, trigger }: Part) =>
    JSON.stringify([shape, material, light, label, trigger]);
  return looks(a) === looks(b);
}
