// Poses: limbs oppose each other, air differs from ground, turning takes the short way.
import { expect, test } from 'vitest';
import { pose, turnTowards, type Motion } from './pose';

const standing: Motion = { speed: 0, rise: 0, grounded: true, stride: 0, time: 0, landing: 0 };

test('standing legs are still, walking legs oppose each other', () => {
  expect(pose({ ...standing, stride: 1 }).legLeft).toBeCloseTo(0);
  const step = pose({ ...standing, speed: 4, stride: Math.PI / 2 });
  expect(step.legLeft).toBeGreaterThan(0.4);
  expect(step.legRight).toBeCloseTo(-step.legLeft);
  expect(Math.sign(step.armLeft)).toBe(-Math.sign(step.legLeft));
});

test('running swings wider than walking', () => {
  const swing = (speed: number) => pose({ ...standing, speed, stride: Math.PI / 2 }).legLeft;
  expect(swing(7)).toBeGreaterThan(swing(3));
});

test('falling spreads the arms, landing squashes', () => {
  expect(pose({ ...standing, grounded: false, rise: -8 }).armSpread).toBeGreaterThan(1);
  expect(pose({ ...standing, landing: 1 }).squash).toBeLessThan(0.9);
});

test('swimmers lean forward and do not fall', () => {
  const still = pose({ ...standing, grounded: false, rise: -8, swimming: true });
  expect(still.lean).toBeCloseTo(0);
  expect(pose({ ...standing, grounded: false, speed: 3, swimming: true }).lean).toBeLessThan(-0.5);
});

test('turning takes the short way round', () => {
  expect(turnTowards(3, -3, 100, 1)).toBeCloseTo(3 + (2 * Math.PI - 6));
  expect(turnTowards(0, 1, 10, 0)).toBe(0);
});
