// When the governor changes the quality, and when it must not.
import { expect, test } from 'vitest';
import { parseQuality, QualityGovernor, startingQuality } from './quality';

function run(governor: QualityGovernor, ms: number, frames: number): string[] {
  const changes: string[] = [];
  for (let i = 0; i < frames; i++) {
    const change = governor.frame(ms);
    if (change) changes.push(change);
  }
  return changes;
}

test('a slow second lowers the quality, one slow frame does not', () => {
  const governor = new QualityGovernor('medium');
  expect(run(governor, 16, 60)).toEqual([]);
  expect(run(governor, 400, 1)).toEqual([]);
  expect(run(governor, 16, 60)).toEqual([]);
  expect(run(governor, 50, 60)).toEqual(['low']);
  expect(run(governor, 50, 200)).toEqual([]);
});

/** Feeds frames until the level changes; returns the level and the seconds it took. */
function until(governor: QualityGovernor, ms: number): [string, number] {
  for (let frames = 1; frames < 20_000; frames++) {
    const change = governor.frame(ms);
    if (change) return [change, (frames * ms) / 1000];
  }
  return ['never', Infinity];
}

test('going up needs seconds of fast frames and does not flip back and forth', () => {
  const governor = new QualityGovernor('medium');
  const [up, seconds] = until(governor, 8);
  expect(up).toBe('high');
  expect(seconds).toBeGreaterThan(4);
  expect(until(governor, 40)[0]).toBe('medium');
  expect(until(governor, 8)[0]).toBe('never');
});

test('a hidden tab is not a slow frame', () => {
  expect(run(new QualityGovernor('medium'), 5000, 50)).toEqual([]);
});

test('names', () => {
  expect(parseQuality('low')).toBe('low');
  expect(parseQuality('ultra')).toBe(null);
  expect(startingQuality('ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device))')).toBe('low');
  expect(startingQuality('ANGLE (Apple M2)')).toBe('medium');
});
