// Which chunks are meshed, and in which order.
import { expect, test } from 'vitest';
import type { ChunkPlace } from './messages';
import { DrawPlan } from './plan';

const grid = { first: [-4, 0, -4] as ChunkPlace, count: [8, 4, 8] as ChunkPlace, chunkM: 32 };

function all(plan: DrawPlan): ChunkPlace[] {
  const places: ChunkPlace[] = [];
  for (let place = plan.next(); place; place = plan.next()) places.push(place);
  return places;
}

test('chunks are meshed nearest first, each once, and none out of range', () => {
  const plan = new DrawPlan(grid);
  expect(plan.look([1, 40, 1], 100)).toEqual([]);
  const places = all(plan);
  expect(places[0]).toEqual([0, 1, 0]);
  expect(new Set(places.map(String)).size).toBe(places.length);
  expect(places.every(([x, y, z]) => x >= -4 && x < 4 && y >= 0 && y < 4 && z >= -4 && z < 4)).toBe(true);
  expect(places.length).toBeGreaterThan(60);
  expect(plan.idle).toBe(true);
  plan.look([1, 40, 1], 100);
  expect(all(plan), 'nothing is drawn twice').toEqual([]);
});

test('changed chunks come before new ones, and only if they are in range', () => {
  const plan = new DrawPlan(grid);
  plan.look([1, 40, 1], 100);
  for (let i = 0; i < 10; i++) plan.next();
  plan.change([
    [0, 1, 0],
    [3, 3, 3],
  ]);
  expect(plan.next()).toEqual([0, 1, 0]);
  expect(plan.next()).not.toEqual([0, 1, 0]);
});

test('chunks out of range are dropped and meshed again when the player returns', () => {
  const plan = new DrawPlan(grid);
  plan.look([-100, 40, -100], 60);
  const near = all(plan);
  const dropped = plan.look([100, 40, 100], 60);
  expect(dropped.map(String).sort()).toEqual(near.map(String).sort());
  all(plan);
  plan.look([-100, 40, -100], 60);
  expect(all(plan).length).toBe(near.length);
});
