// Formatting of numbers and times.
import { expect, test } from 'vitest';
import { ago, bytes, compact, count, date, duration, percent, plural } from './format';

test('sizes have a unit and at most three digits', () => {
  expect([0, 999, 1000, 3400, 999_900, 12_345_678].map(bytes)).toEqual([
    '0 B',
    '999 B',
    '1.0 kB',
    '3.4 kB',
    '1.0 MB',
    '12 MB',
  ]);
});

test('counts', () => {
  expect(count(1204)).toBe('1,204');
  expect(compact(12_040)).toBe('12K');
  expect(plural(1, 'play')).toBe('1 play');
  expect(plural(0, 'play')).toBe('0 plays');
  expect(percent(0.254)).toBe('25 %');
});

test('times are relative to now', () => {
  const now = Date.parse('2026-11-16T10:00:00Z');
  expect(ago('2026-11-16T09:59:40Z', now)).toBe('just now');
  expect(ago('2026-11-16T07:00:00Z', now)).toBe('3 hours ago');
  expect(ago('2026-11-15T09:00:00Z', now)).toBe('yesterday');
  expect(ago('nonsense', now)).toBe('');
  expect(date('nonsense')).toBe('');
});

test('durations', () => {
  expect([0, 40.9, 60, 125, 3599, 3725].map(duration)).toEqual([
    '0 s',
    '40 s',
    '1 min',
    '2 min',
    '59 min',
    '1 h 2 min',
  ]);
  expect([-1, Number.NaN].map(duration)).toEqual(['', '']);
});
