// Draws the parts of the scene. Static parts are merged into one mesh per material; a part that turns
// out to move (known from the server, not from the scene) is cut out of the merge and gets its own mesh.
import {
  BufferAttribute,
  BufferGeometry,
  Color,
  Group,
  Matrix4,
  Mesh,
  Quaternion,
  type QuaternionLike,
  Vector3,
  type Vector3Like,
} from 'three';
import type { Part } from '../core/parts';
import { type MeshSource, shapeGeometry } from './geometry';
import type { MaterialLibrary } from './materials';

interface MergedRange {
  mesh: Mesh;
  firstIndex: number;
  indexCount: number;
}

const ONE = new Vector3(1, 1, 1);

export class PartsView {
  readonly group = new Group();
  #parts = new Map<number, Part>();
  #merged = new Map<number, MergedRange>();
  #movers = new Map<number, Mesh>();

  constructor(
    private readonly materials: MaterialLibrary,
    private readonly round: boolean,
    private readonly meshes?: MeshSource,
  ) {}

  /** Draws the parts of a scene; parts with a dynamic body get their own mesh immediately. */
  addAll(parts: Iterable<Part>): void {
    const batches = new Map<string, Part[]>();
    for (const part of parts) {
      if (!part.shape || part.material.opacity === 0) continue;
      this.#parts.set(part.id, part);
      if (part.moves) {
        this.#addMover(part);
        continue;
      }
      const key = this.materials.key(part.material);
      const batch = batches.get(key);
      if (batch) batch.push(part);
      else batches.set(key, [part]);
    }
    for (const batch of batches.values()) this.#merge(batch);
  }

  /** Draws one part that was spawned later. */
  add(part: Part): void {
    if (!part.shape || this.#parts.has(part.id)) return;
    this.#parts.set(part.id, part);
    this.#addMover(part);
  }

  move(id: number, position: Vector3Like, rotation: QuaternionLike): void {
    const mesh = this.#movers.get(id) ?? this.#cutOut(id);
    if (!mesh) return;
    mesh.position.copy(position);
    mesh.quaternion.copy(rotation);
  }

  remove(id: number): void {
    this.#hideMerged(id);
    const mesh = this.#movers.get(id);
    if (mesh) {
      this.group.remove(mesh);
      mesh.geometry.dispose();
      this.#movers.delete(id);
    }
    this.#parts.delete(id);
  }

  dispose(): void {
    for (const child of this.group.children) if (child instanceof Mesh) child.geometry.dispose();
    this.group.clear();
  }

  #addMover(part: Part): Mesh {
    const mesh = this.#mesh(coloured(part, this.round, this.meshes), part);
    mesh.position.fromArray(part.position);
    mesh.quaternion.fromArray(part.rotation);
    this.#movers.set(part.id, mesh);
    return mesh;
  }

  #cutOut(id: number): Mesh | null {
    const part = this.#parts.get(id);
    if (!part) return null;
    this.#hideMerged(id);
    return this.#addMover(part);
  }

  /** Collapses a part's triangles in the merged mesh to a point: cheaper than rebuilding the mesh. */
  #hideMerged(id: number): void {
    const range = this.#merged.get(id);
    if (!range) return;
    this.#merged.delete(id);
    const index = range.mesh.geometry.getIndex();
    if (!index) return;
    for (let i = 0; i < range.indexCount; i++) index.setX(range.firstIndex + i, index.getX(range.firstIndex));
    index.needsUpdate = true;
  }

  #mesh(geometry: BufferGeometry, part: Part): Mesh {
    const material = this.materials.get(part.material);
    const mesh = new Mesh(geometry, material);
    mesh.castShadow = !material.transparent && !part.trigger;
    mesh.receiveShadow = true;
    this.group.add(mesh);
    return mesh;
  }

  #merge(batch: Part[]): void {
    const pieces = batch.map((part) => {
      const place = new Matrix4().compose(new Vector3(...part.position), new Quaternion(...part.rotation), ONE);
      return coloured(part, this.round, this.meshes).applyMatrix4(place);
    });
    const first = batch[0];
    if (!first) return;
    const mesh = this.#mesh(mergeGeometries(pieces), first);
    mesh.matrixAutoUpdate = false;
    let firstIndex = 0;
    pieces.forEach((piece, i) => {
      const indexCount = piece.getIndex()?.count ?? 0;
      const part = batch[i];
      if (part) this.#merged.set(part.id, { mesh, firstIndex, indexCount });
      firstIndex += indexCount;
      piece.dispose();
    });
  }
}

/** The part's geometry with its colour in every vertex. */
function coloured(part: Part, round: boolean, meshes?: MeshSource): BufferGeometry {
  const geometry = part.shape ? shapeGeometry(part.shape, round, meshes) : new BufferGeometry();
  const color = new Color(part.material.color);
  const count = geometry.getAttribute('position').count;
  const colors = new Float32Array(count * 3);
  for (let i = 0; i < count; i++) color.toArray(colors, i * 3);
  geometry.setAttribute('color', new BufferAttribute(colors, 3));
  return geometry;
}

/** Joins indexed geometries that all have position, normal, uv and color. */
function mergeGeometries(pieces: BufferGeometry[]): BufferGeometry {
  const merged = new BufferGeometry();
  for (const [name, width] of [
    ['position', 3],
    ['normal', 3],
    ['uv', 2],
    ['color', 3],
  ] as const) {
    const total = pieces.reduce((sum, piece) => sum + piece.getAttribute(name).count * width, 0);
    const array = new Float32Array(total);
    let offset = 0;
    for (const piece of pieces) {
      array.set(piece.getAttribute(name).array, offset);
      offset += piece.getAttribute(name).count * width;
    }
    merged.setAttribute(name, new BufferAttribute(array, width));
  }
  const index = new Uint32Array(pieces.reduce((sum, piece) => sum + (piece.getIndex()?.count ?? 0), 0));
  let at = 0;
  let base = 0;
  for (const piece of pieces) {
    const source = piece.getIndex();
    for (let i = 0; i < (source?.count ?? 0); i++) index[at++] = (source?.getX(i) ?? 0) + base;
    base += piece.getAttribute('position').count;
  }
  merged.setIndex(new BufferAttribute(index, 1));
  return merged;
}

/** The direction of the spawn point nearest to `feet`: yaw 0 looks along -Z. */
export function spawnYaw(parts: Iterable<Part>, feet: Vector3): number {
  let nearest: { distance: number; rotation: Part['rotation'] } | null = null;
  for (const { spawnPoint, position, rotation } of parts) {
    const distance = spawnPoint ? feet.distanceToSquared(new Vector3(...position)) : Infinity;
    if (distance < (nearest?.distance ?? Infinity)) nearest = { distance, rotation };
  }
  if (!nearest) return 0;
  const forward = new Vector3(0, 0, -1).applyQuaternion(new Quaternion(...nearest.rotation));
  return Math.atan2(-forward.x, -forward.z);
}
