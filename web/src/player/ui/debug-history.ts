// History for the debug overlay's graphs: the last seconds of a few statistics in bins of 100 ms. Pure.
import type { CoreStats } from '../core/events';
import type { Value } from './sparkline';

const BIN_MS = 100;
/** 15 seconds: long enough to see a past event, short enough to see current changes. */
export const BINS = 150;

export interface Series {
  /** Undefined before the first pong. */
  rttMs: Value[];
  /** Longest gap between snapshots; undefined before the first. */
  snapshotAgeMs: Value[];
  kibInPerS: Value[];
  /** Number of corrections of the own character. */
  corrections: Value[];
  /** Longest frame. */
  frameMs: Value[];
}

interface Totals {
  bytesIn: number;
  corrections: number;
}

export class DebugHistory {
  readonly series: Series = { rttMs: [], snapshotAgeMs: [], kibInPerS: [], corrections: [], frameMs: [] };
  #binStart: number | null = null;
  #before: Totals = { bytesIn: 0, corrections: 0 };
  #peakAge: Value = null;
  #peakFrame = 0;

  /** Adds the statistics of one frame of length `frameMs`. */
  sample(nowMs: number, stats: CoreStats, frameMs: number): void {
    const totals = { bytesIn: stats.bytesIn ?? 0, corrections: stats.corrections ?? 0 };
    this.#binStart ??= this.#begin(nowMs, totals);
    if (stats.snapshotAgeMs !== undefined) this.#peakAge = Math.max(this.#peakAge ?? 0, stats.snapshotAgeMs);
    this.#peakFrame = Math.max(this.#peakFrame, frameMs);
    const bins = Math.floor((nowMs - this.#binStart) / BIN_MS);
    if (bins < 1) return;
    // A slow frame spans several bins; its counts are distributed over them.
    const seconds = (nowMs - this.#binStart) / 1000;
    // A new connection counts from zero again.
    const grown = (key: keyof Totals) => Math.max(0, totals[key] - this.#before[key]);
    const values: Record<keyof Series, Value> = {
      rttMs: stats.rttMs ?? null,
      snapshotAgeMs: this.#peakAge,
      kibInPerS: grown('bytesIn') / 1024 / seconds,
      corrections: grown('corrections') / bins,
      frameMs: this.#peakFrame,
    };
    for (const key of Object.keys(values) as (keyof Series)[]) {
      const added = Array<Value>(Math.min(bins, BINS)).fill(values[key]);
      this.series[key] = [...this.series[key], ...added].slice(-BINS);
    }
    this.#binStart = this.#begin(nowMs, totals);
  }

  #begin(nowMs: number, totals: Totals): number {
    this.#before = totals;
    this.#peakAge = null;
    this.#peakFrame = 0;
    return nowMs;
  }
}
