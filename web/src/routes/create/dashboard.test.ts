// Labels and sums of the dashboard.
import { expect, test } from 'vitest';
import { dayLabel, share, spanLabel, sum } from './dashboard';

test('days and intervals have short labels', () => {
  expect(dayLabel('2026-11-16')).toBe('Nov 16');
  expect(dayLabel('nonsense')).toBe('nonsense');
  expect(spanLabel('2026-11-16T09:05:00Z', 300)).toBe('Nov 16, 09:05');
  expect(spanLabel('2026-11-16T09:05:00Z', 86_400)).toBe('Nov 16');
  expect(spanLabel('nonsense', 300)).toBe('');
});

test('sums and shares', () => {
  const one = {
    day: '2026-11-16',
    plays: 3,
    players: 2,
    new_players: 1,
    back_after_1: 0,
    back_after_7: 0,
    peak_players: 2,
    script_errors: 5,
  };
  expect(sum([one, one], 'script_errors')).toBe(10);
  expect(share(null)).toBe('–');
  expect(share(33.4)).toBe('33 %');
});
