// Shapes of parts as geometry with softened edges. UVs are in metres, so that a pattern keeps its size on
// every part.
import { BufferAttribute, BufferGeometry, CapsuleGeometry, CylinderGeometry, SphereGeometry, Vector3 } from 'three';
import type { PartShape, Vec3 } from '../core/parts';

/** Maximum bevel width of a box. */
const BEVEL_M = 0.06;

/** The corners of a mesh shape's triangles, nine numbers each, by its asset. */
export type MeshSource = (asset: string) => Float32Array | undefined;

/** Local geometry of a shape; an unknown mesh is drawn as a unit box. */
export function shapeGeometry(shape: PartShape, round: boolean, meshes: MeshSource = () => undefined): BufferGeometry {
  // Large round shapes need more segments.
  const radius = 'radius' in shape ? shape.radius : 0;
  const segments = 4 * Math.ceil(Math.min(64, (round ? 20 : 12) + radius * (round ? 6 : 3)) / 4);
  switch (shape.type) {
    case 'box':
      return softBox(shape.size);
    case 'wedge':
      return wedge(shape.size);
    case 'sphere':
      return metric(new SphereGeometry(shape.radius, segments, Math.ceil(segments / 2)));
    case 'capsule':
      return metric(new CapsuleGeometry(shape.radius, Math.max(0, shape.height - 2 * shape.radius), 6, segments));
    case 'cylinder':
      return metric(new CylinderGeometry(shape.radius, shape.radius, shape.height, segments));
    case 'mesh': {
      const corners = meshes(shape.asset);
      return corners ? triangles(corners, shape.scale) : softBox([1, 1, 1]);
    }
  }
}

/** Half extents of a shape's bounding box in its own space. */
export function shapeHalfExtents(shape: PartShape): Vec3 {
  switch (shape.type) {
    case 'box':
    case 'wedge':
      return [shape.size[0] / 2, shape.size[1] / 2, shape.size[2] / 2];
    case 'sphere':
      return [shape.radius, shape.radius, shape.radius];
    case 'capsule':
    case 'cylinder':
      return [shape.radius, shape.height / 2, shape.radius];
    case 'mesh':
      return [0.5, 0.5, 0.5];
  }
}

/**
 * A box with bevelled edges in 24 vertices. Each face keeps its own normal at its corners and the bevels share
 * those vertices, so the shading runs smoothly round the edge: 44 triangles look like a rounded box.
 */
export function softBox(size: Vec3, bevel = BEVEL_M): BufferGeometry {
  const half = size.map((s) => Math.abs(s) / 2) as Vec3;
  const b = Math.min(bevel, ...half.map((h) => h * 0.45));
  const positions: number[] = [];
  const normals: number[] = [];
  const uvs: number[] = [];
  const index: number[] = [];
  // Vertex of corner (bits x,y,z) on the face of the given axis.
  const vertex = (corner: number, axis: number) => axis * 8 + corner;
  for (let axis = 0; axis < 3; axis++) {
    for (let corner = 0; corner < 8; corner++) {
      const sign = [corner & 1 ? 1 : -1, corner & 2 ? 1 : -1, corner & 4 ? 1 : -1] as Vec3;
      const point = sign.map((s, i) => s * ((half[i] ?? 0) - (i === axis ? 0 : b))) as Vec3;
      positions.push(...point);
      normals.push(...sign.map((s, i) => (i === axis ? s : 0)));
      uvs.push(...faceUv(point, axis));
    }
  }
  const quad = (a: number, c: number, d: number, e: number) => pushOutward(index, positions, [a, c, d, a, d, e]);
  for (let axis = 0; axis < 3; axis++) {
    const [u, v] = [1 << ((axis + 1) % 3), 1 << ((axis + 2) % 3)];
    for (const side of [0, 1 << axis]) {
      const face = [side, side | u, side | u | v, side | v].map((corner) => vertex(corner, axis));
      quad(face[0]!, face[1]!, face[2]!, face[3]!);
    }
    // The four bevels along this axis join the two other faces.
    const [p, q] = [(axis + 1) % 3, (axis + 2) % 3];
    for (const corner of [0, u, v, u | v]) {
      const far = corner | (1 << axis);
      quad(vertex(corner, p), vertex(far, p), vertex(far, q), vertex(corner, q));
    }
  }
  for (let corner = 0; corner < 8; corner++) {
    pushOutward(index, positions, [vertex(corner, 0), vertex(corner, 1), vertex(corner, 2)]);
  }
  return build(positions, normals, uvs, index);
}

/** A ramp: the box of `size` cut from its low front edge (+Z) to its high back edge (-Z). */
export function wedge(size: Vec3): BufferGeometry {
  const [x, y, z] = size.map((s) => s / 2) as Vec3;
  const faces: Vec3[][] = [
    [
      [-x, -y, -z],
      [x, -y, -z],
      [x, -y, z],
      [-x, -y, z],
    ],
    [
      [-x, -y, -z],
      [-x, y, -z],
      [x, y, -z],
      [x, -y, -z],
    ],
    [
      [-x, -y, z],
      [x, -y, z],
      [x, y, -z],
      [-x, y, -z],
    ],
    [
      [-x, -y, -z],
      [-x, -y, z],
      [-x, y, -z],
    ],
    [
      [x, -y, -z],
      [x, y, -z],
      [x, -y, z],
    ],
  ];
  const positions: number[] = [];
  const normals: number[] = [];
  const uvs: number[] = [];
  const index: number[] = [];
  const [e1, e2, normal] = [new Vector3(), new Vector3(), new Vector3()];
  for (const face of faces) {
    const start = positions.length / 3;
    const [a, b, c] = face as [Vec3, Vec3, Vec3];
    normal
      .crossVectors(
        e1.subVectors(new Vector3(...b), new Vector3(...a)),
        e2.subVectors(new Vector3(...c), new Vector3(...a)),
      )
      .normalize();
    const centre = new Vector3(0, -y / 3, -z / 3);
    if (normal.dot(e1.subVectors(new Vector3(...a), centre)) < 0) normal.negate();
    for (const point of face) {
      positions.push(...point);
      normals.push(normal.x, normal.y, normal.z);
      uvs.push(...faceUv(point, dominantAxis(normal)));
    }
    const triangles = face.length === 4 ? [0, 1, 2, 0, 2, 3] : [0, 1, 2];
    pushOutward(
      index,
      positions,
      triangles.map((i) => i + start),
      centre,
    );
  }
  return build(positions, normals, uvs, index);
}

/** A surface of triangles, each shaded flat. */
export function triangles(corners: Float32Array, scale: Vec3): BufferGeometry {
  const count = Math.floor(corners.length / 9) * 3;
  const positions = new Float32Array(count * 3);
  for (let i = 0; i < positions.length; i++) positions[i] = (corners[i] ?? 0) * (scale[i % 3] ?? 1);
  // A mirrored triangle would face inwards.
  if (scale[0] * scale[1] * scale[2] < 0) {
    for (let first = 0; first < positions.length; first += 9) {
      const second = positions.slice(first + 3, first + 6);
      positions.copyWithin(first + 3, first + 6, first + 9);
      positions.set(second, first + 6);
    }
  }
  const normals = new Float32Array(count * 3);
  const uvs = new Float32Array(count * 2);
  const [a, b, c] = [new Vector3(), new Vector3(), new Vector3()];
  for (let first = 0; first < count; first += 3) {
    a.fromArray(positions, first * 3);
    b.fromArray(positions, first * 3 + 3);
    c.fromArray(positions, first * 3 + 6);
    const normal = b.sub(a).cross(c.sub(a)).normalize();
    const axis = dominantAxis(normal);
    for (let i = first; i < first + 3; i++) {
      normal.toArray(normals, i * 3);
      const at = i * 3;
      uvs.set(faceUv([positions[at] ?? 0, positions[at + 1] ?? 0, positions[at + 2] ?? 0], axis), i * 2);
    }
  }
  const geometry = new BufferGeometry();
  geometry.setAttribute('position', new BufferAttribute(positions, 3));
  geometry.setAttribute('normal', new BufferAttribute(normals, 3));
  geometry.setAttribute('uv', new BufferAttribute(uvs, 2));
  geometry.setIndex(Array.from({ length: count }, (_, i) => i));
  return geometry;
}

/** Adds triangles, turned so that they face away from `centre`. */
function pushOutward(index: number[], positions: number[], triangles: number[], centre = new Vector3()): void {
  const at = (i: number) => new Vector3().fromArray(positions, i * 3);
  for (let t = 0; t < triangles.length; t += 3) {
    const [i, j, k] = [triangles[t]!, triangles[t + 1]!, triangles[t + 2]!];
    const a = at(i);
    const normal = at(j).sub(a).cross(at(k).sub(a));
    const outward = a.clone().add(at(j)).add(at(k)).divideScalar(3).sub(centre);
    if (normal.dot(outward) >= 0) index.push(i, j, k);
    else index.push(i, k, j);
  }
}

/** Flat projection along the face's axis, in metres. */
function faceUv(point: Vec3, axis: number): [number, number] {
  if (axis === 0) return [point[2], point[1]];
  if (axis === 1) return [point[0], point[2]];
  return [point[0], point[1]];
}

function dominantAxis(normal: Vector3): number {
  const [x, y, z] = [Math.abs(normal.x), Math.abs(normal.y), Math.abs(normal.z)];
  return y >= x && y >= z ? 1 : x >= z ? 0 : 2;
}

/** Gives a round three.js geometry the metre UVs of the others. */
function metric(geometry: BufferGeometry): BufferGeometry {
  const position = geometry.getAttribute('position');
  const normal = geometry.getAttribute('normal');
  const uv = geometry.getAttribute('uv');
  const n = new Vector3();
  for (let i = 0; i < position.count; i++) {
    n.fromBufferAttribute(normal, i);
    const [u, v] = faceUv([position.getX(i), position.getY(i), position.getZ(i)], dominantAxis(n));
    uv.setXY(i, u, v);
  }
  return geometry;
}

function build(positions: number[], normals: number[], uvs: number[], index: number[]): BufferGeometry {
  const geometry = new BufferGeometry();
  geometry.setAttribute('position', new BufferAttribute(new Float32Array(positions), 3));
  geometry.setAttribute('normal', new BufferAttribute(new Float32Array(normals), 3));
  geometry.setAttribute('uv', new BufferAttribute(new Float32Array(uvs), 2));
  geometry.setIndex(index);
  return geometry;
}
