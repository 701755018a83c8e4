// Part geometry: closed, facing outwards, with the declared size.
import { Vector3, type BufferGeometry } from 'three';
import { expect, test } from 'vitest';
import { shapeGeometry, shapeHalfExtents, softBox, triangles, wedge } from './geometry';

/** Volume by the divergence theorem: right only when the surface is closed and all triangles face outwards. */
function volume(geometry: BufferGeometry): number {
  const position = geometry.getAttribute('position');
  const index = geometry.getIndex()!;
  let sum = 0;
  for (let t = 0; t < index.count; t += 3) {
    const [a, b, c] = [0, 1, 2].map((k) => new Vector3().fromBufferAttribute(position, index.getX(t + k)));
    sum += a!.dot(b!.clone().cross(c!)) / 6;
  }
  return sum;
}

test('a soft box is a closed box of its size with 44 triangles', () => {
  const box = softBox([4, 2, 6]);
  box.computeBoundingBox();
  expect(box.boundingBox!.max.toArray()).toEqual([2, 1, 3]);
  expect(box.getIndex()!.count / 3).toBe(44);
  expect(volume(box)).toBeGreaterThan(47.5);
  expect(volume(box)).toBeLessThan(48);
});

test('a thin box keeps its faces: the bevel shrinks with it', () => {
  expect(volume(softBox([4, 0.02, 4]))).toBeGreaterThan(0.3);
});

test('a wedge is half of its box', () => {
  expect(volume(wedge([2, 2, 2]))).toBeCloseTo(4);
});

test('every shape stays within its half extents', () => {
  const shapes = [
    { type: 'box', size: [1, 2, 3] },
    { type: 'wedge', size: [1, 2, 3] },
    { type: 'sphere', radius: 2 },
    { type: 'capsule', radius: 0.5, height: 2 },
    { type: 'cylinder', radius: 1, height: 4 },
  ] as const;
  for (const shape of shapes) {
    const geometry = shapeGeometry(shape as never, true);
    geometry.computeBoundingBox();
    const max = geometry.boundingBox!.max.toArray();
    shapeHalfExtents(shape as never).forEach((half, axis) => expect(max[axis]).toBeCloseTo(half, 5));
  }
});

test('a mesh is drawn as the triangles it is made of, scaled', () => {
  // A corner of a cube: three outward triangles and the one that closes it.
  const corners = new Float32Array([
    0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1,
  ]);
  const mesh = triangles(corners, [2, 3, 4]);
  expect(volume(mesh)).toBeCloseTo(24 / 6);
  const normal = mesh.getAttribute('normal');
  for (let i = 0; i < normal.count; i++) expect(new Vector3().fromBufferAttribute(normal, i).length()).toBeCloseTo(1);
  // Mirrored, it still faces outwards.
  expect(volume(triangles(corners, [-2, 3, 4]))).toBeCloseTo(24 / 6);
  const drawn = shapeGeometry({ type: 'mesh', asset: 'assets/a.glb', scale: [1, 1, 1] }, true, () => corners);
  expect(drawn.getIndex()!.count).toBe(12);
  expect(
    shapeGeometry({ type: 'mesh', asset: 'assets/b.glb', scale: [1, 1, 1] }, true).getAttribute('position').count,
  ).toBe(24);
});
