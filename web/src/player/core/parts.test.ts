// The parts that the page knows, and when a changed part must be drawn again.
import { Vector3 } from 'three';
import { expect, test } from 'vitest';
import { makePart } from './parts.fixture';
import { looksLike, PartMap } from './parts';
import { spawnYaw } from '../view/parts';

test('changes replace, add and remove parts', () => {
  const parts = new PartMap();
  parts.apply({ changed: [makePart(1), makePart(2)], removed: [] });
  parts.apply({ changed: [makePart(2, { name: 'Door' }), makePart(3)], removed: [1] });
  expect([...parts.values()].map(({ id, name }) => [id, name])).toEqual([
    [2, 'Door'],
    [3, 'Part 3'],
  ]);
});

test('a part is drawn again when its looks change, and only then', () => {
  const part = makePart(1, { shape: { type: 'box', size: [1, 1, 1] } });
  expect(looksLike(part, { ...part, position: [5, 0, 0], attributes: { Open: true }, tags: ['door'] })).toBe(true);
  expect(looksLike(part, { ...part, shape: { type: 'box', size: [2, 1, 1] } })).toBe(false);
  expect(looksLike(part, { ...part, material: { ...part.material, opacity: 0.5 } })).toBe(false);
});

test('a player looks where the nearest spawn point looks', () => {
  const parts = [
    makePart(1, { spawnPoint: true, position: [50, 0, 0] }),
    makePart(2, { spawnPoint: true, position: [1, 0, 0], rotation: [0, Math.SQRT1_2, 0, Math.SQRT1_2] }),
    makePart(3, { rotation: [0, 1, 0, 0] }),
  ];
  expect(spawnYaw(parts, new Vector3())).toBeCloseTo(Math.PI / 2);
  expect(spawnYaw(parts, new Vector3(49, 0, 0))).toBeCloseTo(0);
  expect(spawnYaw([], new Vector3())).toBe(0);
});
