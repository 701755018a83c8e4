// Labels and sums for the dashboard.
import type { DashboardDay } from '../../generated/rest';

const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const hour = new Intl.DateTimeFormat('en', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
  timeZone: 'UTC',
});
const DAY_S = 86_400;

/** "Nov 16" of `2026-11-16`. */
export function dayLabel(date: string): string {
  const at = new Date(`${date}T00:00:00Z`);
  return Number.isNaN(at.getTime()) ? date : day.format(at);
}

/** The start of an interval, with the time of day for intervals shorter than a day. */
export function spanLabel(rfc3339: string, span_s: number): string {
  const at = new Date(rfc3339);
  if (Number.isNaN(at.getTime())) return '';
  return (span_s < DAY_S ? hour : day).format(at);
}

/** "34 %"; a dash without eligible players. */
export const share = (pct: number | null): string => (pct === null ? '–' : `${Math.round(pct)} %`);

export const sum = (days: readonly DashboardDay[], what: Exclude<keyof DashboardDay, 'day'>): number =>
  days.reduce((total, each) => total + each[what], 0);
