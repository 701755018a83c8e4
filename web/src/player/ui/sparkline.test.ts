// The geometry of the overlay's graphs.
import { expect, test } from 'vitest';
import { sparkline } from './sparkline';

const box = { slots: 3, width: 100, height: 32, floor: 10 };

test('the newest value is at the right edge, zero at the bottom, the top is a round number', () => {
  const { top, line, area } = sparkline([0, 37], box);
  expect(top).toBe(50);
  expect(line).toBe('50,32 100,9.8');
  expect(area).toBe('50,32 50,32 100,9.8 100,32');
});

test('small values do not fill the graph, and no values draw nothing', () => {
  expect(sparkline([1, 2, 1], box).top).toBe(10);
  expect(sparkline([], box)).toMatchObject({ line: '', area: '', top: 10 });
});

test('more values than slots show the newest', () => {
  expect(sparkline([9, 0, 0, 0], box).line).toBe('0,32 50,32 100,32');
});

test('unknown values have no point', () => {
  const { line, area, top } = sparkline([null, 10, null], box);
  expect(top).toBe(10);
  expect(line).toBe('50,2');
  expect(area).toBe('50,32 50,2 50,32');
  expect(sparkline([null, null], box)).toMatchObject({ line: '', area: '' });
});
