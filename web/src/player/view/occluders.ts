// Line-of-sight tests: solid parts as oriented boxes, without testing triangles.
// Used every frame by the camera and the blob shadow.
import { Quaternion, type QuaternionLike, Vector3, type Vector3Like } from 'three';
import type { Part } from '../core/parts';
import { shapeHalfExtents } from './geometry';

interface Occluder {
  position: Vector3;
  inverse: Quaternion;
  half: Vector3;
  reach: number;
}

type Triple = [number, number, number];

const from = new Vector3();
const along = new Vector3();

export class Occluders {
  #boxes = new Map<number, Occluder>();

  /** `ground` returns the distance at which a ray hits the voxel terrain, at most `max`. */
  constructor(private readonly ground: ((origin: Triple, direction: Triple, max: number) => number) | null = null) {}

  add(part: Part): void {
    const { shape } = part;
    // Glass is transparent, and the box of a mesh would block more than the mesh.
    if (!shape || shape.type === 'mesh' || part.trigger || part.material.opacity < 0.5) return;
    const half = new Vector3(...shapeHalfExtents(shape));
    this.#boxes.set(part.id, {
      position: new Vector3(...part.position),
      inverse: new Quaternion(...part.rotation).invert(),
      half,
      reach: half.length(),
    });
  }

  move(id: number, position: Vector3Like, rotation: QuaternionLike): void {
    const box = this.#boxes.get(id);
    if (!box) return;
    box.position.copy(position);
    box.inverse.copy(rotation).invert();
  }

  remove(id: number): void {
    this.#boxes.delete(id);
  }

  /** Distance to the first part along the ray (a unit direction), at most `max`. */
  cast(origin: Vector3, direction: Vector3, max: number): number {
    let nearest = max;
    for (const box of this.#boxes.values()) {
      from.subVectors(origin, box.position);
      const along0 = -from.dot(direction);
      // Bounding sphere: behind the start, beyond the nearest hit, or beside the ray.
      if (along0 + box.reach < 0 || along0 - box.reach > nearest) continue;
      if (from.lengthSq() - along0 * along0 > box.reach * box.reach) continue;
      const hit = enter(
        from.applyQuaternion(box.inverse),
        along.copy(direction).applyQuaternion(box.inverse),
        box.half,
      );
      if (hit !== null && hit < nearest) nearest = hit;
    }
    return this.ground ? Math.min(nearest, this.ground(origin.toArray(), direction.toArray(), nearest)) : nearest;
  }
}

/** Where a ray enters a box around the origin; null when it misses or starts inside. */
function enter(origin: Vector3, direction: Vector3, half: Vector3): number | null {
  let near = -Infinity;
  let far = Infinity;
  for (const axis of ['x', 'y', 'z'] as const) {
    const [o, d, h] = [origin[axis], direction[axis], half[axis]];
    if (Math.abs(d) < 1e-9) {
      if (Math.abs(o) > h) return null;
      continue;
    }
    const [a, b] = [(-h - o) / d, (h - o) / d];
    near = Math.max(near, Math.min(a, b));
    far = Math.min(far, Math.max(a, b));
  }
  return near > far || near < 0 ? null : near;
}
