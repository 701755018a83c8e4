// Axes and paths of charts.
import { expect, test } from 'vitest';
import { labelled, largest, linePath, steps } from './chart';

test('axis steps are round and cover the largest value', () => {
  expect(steps(0)).toEqual([0, 1]);
  expect(steps(3)).toEqual([0, 1, 2, 3]);
  expect(steps(17)).toEqual([0, 5, 10, 15, 20]);
  expect(steps(1000)).toEqual([0, 250, 500, 750, 1000]);
  expect(steps(1, 4, false)).toEqual([0, 0.25, 0.5, 0.75, 1]);
  for (const max of [1, 2, 7, 99, 101, 12_345, 9e9]) {
    const all = steps(max);
    expect(all.at(-1)).toBeGreaterThanOrEqual(max);
    expect(all.length).toBeLessThanOrEqual(6);
  }
  expect(steps(Number.NaN)).toEqual([0, 1]);
});

test('labels never overlap, and both ends have one', () => {
  expect(labelled(3, 5)).toEqual([0, 1, 2]);
  expect(labelled(30, 4)).toEqual([0, 10, 19, 29]);
  expect(labelled(0, 4)).toEqual([]);
});

test('a gap interrupts the line, and an isolated point is visible', () => {
  const x = (index: number) => index * 10;
  const y = (value: number) => 100 - value;
  expect(linePath([1, 2, null, 4], x, y)).toBe('M0 99L10 98M30 96h0.1');
  expect(
    largest([
      { name: 'a', values: [1, null, 5] },
      { name: 'b', values: [2] },
    ]),
  ).toBe(5);
});
