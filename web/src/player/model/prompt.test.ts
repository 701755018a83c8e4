// Choice of the interaction prompt: the entity looked at, otherwise the nearest in front, only entities with a prompt.
import { expect, test } from 'vitest';
import type { Triple } from '../luau/host';
import { offerTo, type Surroundings } from './prompt';

const OWN = 1000;

function around(things: Record<number, { at: Triple; prompt?: string }>, hit: number | null = null): Surroundings {
  return {
    inRadius: (center, radius) =>
      Object.entries(things)
        .filter(([, { at }]) => Math.hypot(...at.map((part, axis) => part - center[axis]!)) <= radius)
        .map(([id]) => Number(id)),
    attribute: (id) => things[id]?.prompt ?? null,
    entity: (id) => (things[id] ? { $v: things[id].at } : undefined),
    solidAlong: () => (hit === null ? null : { id: hit, distance: 1 }),
  };
}

const look = { yaw: 0, pitch: 0 };
const offer = (world: Surroundings) => offerTo(world, [0, 0, 0], look, OWN);

test('the nearest entity in front that has a prompt', () => {
  expect(
    offer(
      around({ 1: { at: [0, 1, -3], prompt: 'Open' }, 2: { at: [0.5, 1, -2], prompt: 'Pull' }, 3: { at: [0, 1, -1] } }),
    ),
  ).toEqual({ id: 2, text: 'Pull' });
});

test('nothing behind, out of reach, without a prompt or with an empty one', () => {
  expect(offer(around({ 1: { at: [0, 1, 3], prompt: 'Open' } }))).toBe(null);
  expect(offer(around({ 1: { at: [0, 1, -4.5], prompt: 'Open' } }))).toBe(null);
  expect(offer(around({ 1: { at: [0, 1, -2] }, 2: { at: [0, 1, -2], prompt: '' } }))).toBe(null);
});

test('the entity looked at comes first', () => {
  const things = { 1: { at: [0, 1, -3] as Triple, prompt: 'Open' }, 2: { at: [0.5, 1, -2] as Triple, prompt: 'Pull' } };
  expect(offer(around(things, 1))).toEqual({ id: 1, text: 'Open' });
  expect(offer(around(things, 7))).toEqual({ id: 2, text: 'Pull' });
});
