// The text of labels and how far away it can be read.
import { expect, test } from 'vitest';
import { labelLines, labelOpacity } from './labels';

test('lines are separated, and direction overrides removed', () => {
  expect(labelLines('Win\nhere\u202E')).toEqual(['Win', 'here']);
});

test('a label fades in as a viewer comes near', () => {
  expect(labelOpacity(50, 40)).toBe(0);
  expect(labelOpacity(35, 40)).toBe(0.5);
  expect(labelOpacity(30, 40)).toBe(1);
  expect(labelOpacity(0, 40)).toBe(1);
});
