// Raycasts against solid parts.
import { Quaternion, Vector3 } from 'three';
import { expect, test } from 'vitest';
import type { Part } from '../core/parts';
import { makePart } from '../core/parts.fixture';
import { Occluders } from './occluders';

const wall: Partial<Part> = { shape: { type: 'box', size: [4, 4, 1] }, position: [0, 0, -5] };
const ahead = new Vector3(0, 0, -1);

function world(part: Partial<Part>): Occluders {
  const occluders = new Occluders();
  occluders.add(makePart(1, part));
  return occluders;
}

test('a ray stops at the face of a wall and passes beside it', () => {
  const occluders = world(wall);
  expect(occluders.cast(new Vector3(), ahead, 20)).toBeCloseTo(4.5);
  expect(occluders.cast(new Vector3(3, 0, 0), ahead, 20)).toBe(20);
  expect(occluders.cast(new Vector3(), ahead.clone().negate(), 20)).toBe(20);
});

test('a rotated wall is hit at its rotated position', () => {
  const occluders = world(wall);
  const turn = new Quaternion().setFromAxisAngle(new Vector3(0, 1, 0), Math.PI / 2);
  occluders.move(1, new Vector3(0, 0, -5), turn);
  expect(occluders.cast(new Vector3(), ahead, 20)).toBeCloseTo(3);
  occluders.remove(1);
  expect(occluders.cast(new Vector3(), ahead, 20)).toBe(20);
});

test('triggers and glass do not block', () => {
  expect(world({ ...wall, trigger: true }).cast(new Vector3(), ahead, 20)).toBe(20);
  const { material } = makePart(1);
  expect(world({ ...wall, material: { ...material, opacity: 0.3 } }).cast(new Vector3(), ahead, 20)).toBe(20);
});
