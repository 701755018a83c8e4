// Dusk begins when the sun is low; daylight is unchanged.
import { Color, Vector3 } from 'three';
import { describe, expect, it } from 'vitest';
import { atDusk, dusk } from './dusk';

describe('dusk', () => {
  it('begins when the sun is low, and not before', () => {
    expect(dusk(new Vector3(0.55, 0.62, 0.42).normalize())).toBe(0);
    expect(dusk(new Vector3(1, 0.4, 0).normalize())).toBe(0);
    expect(dusk(new Vector3(1, 0.1, 0).normalize())).toBe(1);
    const between = dusk(new Vector3(1, 0.25, 0).normalize());
    expect(between).toBeGreaterThan(0);
    expect(between).toBeLessThan(1);
  });

  it('does not change daylight colours', () => {
    const day = new Color('#2f86e0');
    expect(atDusk(day, new Color('#000000'), 0).getHex()).toBe(day.getHex());
  });
});
