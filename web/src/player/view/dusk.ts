// The time of day, derived from the elevation of the scene's sun: dusk begins shortly above the horizon.
import type { Color, Vector3 } from 'three';

const EVENING_FROM = 0.34;
const EVENING_AT = 0.16;

/** 0 by day, 1 at dusk. `sun` points from the ground towards the sun. */
export function dusk(sun: Vector3): number {
  const low = Math.min(1, Math.max(0, (EVENING_FROM - sun.y) / (EVENING_FROM - EVENING_AT)));
  return low * low * (3 - 2 * low);
}

/** Blends a daylight colour towards dusk. */
export function atDusk(day: Color, evening: Color, share: number): Color {
  return day.clone().lerp(evening, share);
}
