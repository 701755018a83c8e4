// Effects expire by themselves, and their number is bounded.
import { Vector3 } from 'three';
import { expect, test } from 'vitest';
import { BEAMS_MAX, Effects, PARTICLES_MAX } from './effects';

test('a burst and a beam expire by themselves', () => {
  const effects = new Effects();
  effects.burst(new Vector3(), { Count: 10, Lifetime: 1 });
  effects.beam(new Vector3(), new Vector3(0, 0, 0), { Seconds: 1 });
  effects.update(0.1);
  expect(effects.counts).toEqual({ particles: 10, beams: 1 });
  effects.update(1.5);
  expect(effects.counts).toEqual({ particles: 0, beams: 0 });
});

test('above the limit the oldest effect is replaced', () => {
  const effects = new Effects();
  for (let i = 0; i < 100; i++) {
    effects.burst(new Vector3(), { Count: 200, Direction: new Vector3(), Spread: 180 });
    effects.beam(new Vector3(), new Vector3(1, 1, 1), {});
  }
  effects.update(0.01);
  expect(effects.counts).toEqual({ particles: PARTICLES_MAX, beams: BEAMS_MAX });
  expect(effects.group.children.length).toBe(BEAMS_MAX + 1);
  effects.clear();
  expect(effects.counts).toEqual({ particles: 0, beams: 0 });
});
