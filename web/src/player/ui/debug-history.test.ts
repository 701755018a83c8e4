// The overlay's graphs: bins of 100 ms, peaks preserved, counters converted to rates.
import { expect, test } from 'vitest';
import { BINS, DebugHistory } from './debug-history';

/** Feeds frames of 20 ms from `from` to `to`. */
function feed(history: DebugHistory, from: number, to: number, stats: (now: number) => object) {
  for (let now = from; now <= to; now += 20) history.sample(now, stats(now), 20);
}

test('a bin records the longest snapshot gap and the latest round trip', () => {
  const history = new DebugHistory();
  feed(history, 0, 100, (now) => ({ rttMs: 30 + now / 100, snapshotAgeMs: now === 60 ? 250 : 10 }));
  expect(history.series.snapshotAgeMs).toEqual([250]);
  expect(history.series.rttMs).toEqual([31]);
  feed(history, 120, 200, () => ({ rttMs: 40, snapshotAgeMs: 10 }));
  expect(history.series.snapshotAgeMs).toEqual([250, 10]);
});

test('counters become rates, and a new connection does not make them negative', () => {
  const history = new DebugHistory();
  feed(history, 0, 1000, (now) => ({ bytesIn: now * 20.48, corrections: Math.floor(now / 500) }));
  expect(history.series.kibInPerS).toHaveLength(10);
  for (const rate of history.series.kibInPerS) expect(rate).toBeCloseTo(20);
  expect(history.series.corrections.filter(Boolean)).toEqual([1, 1]);
  feed(history, 1020, 1100, () => ({ bytesIn: 5, corrections: 0 }));
  expect(history.series.kibInPerS.at(-1)).toBe(0);
});

test('a stalled page fills the missed bins, up to the maximum', () => {
  const history = new DebugHistory();
  history.sample(0, { rttMs: 10 }, 16);
  history.sample(500, { rttMs: 20 }, 500);
  expect(history.series.frameMs).toEqual([500, 500, 500, 500, 500]);
  history.sample(3_600_000, { rttMs: 30 }, 3_599_500);
  expect(history.series.rttMs).toHaveLength(BINS);
});

test('unknown values are not drawn as zero', () => {
  const history = new DebugHistory();
  feed(history, 0, 100, () => ({ bytesIn: 0 }));
  expect(history.series.rttMs).toEqual([null]);
  expect(history.series.snapshotAgeMs).toEqual([null]);
  feed(history, 120, 200, () => ({ rttMs: 210, snapshotAgeMs: 30 }));
  expect(history.series.rttMs).toEqual([null, 210]);
  expect(history.series.snapshotAgeMs).toEqual([null, 30]);
});
