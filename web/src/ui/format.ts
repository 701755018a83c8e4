// Formats counts, sizes and times for display. Invalid input gives an empty string, never an exception.

const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

/** 1204 → "1,204". */
export const count = (value: number): string => whole.format(value);

/** 12 040 → "12K": for cards and axes. */
export const compact = (value: number): string => short.format(value);

/** "1 play", "3 plays". */
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

/** 0.254 → "25 %". */
export const percent = (share: number): string => `${Math.round(share * 100)} %`;

/** "512 B", "3.4 MB". */
export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = size / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** "16 Nov 2026", in the reader's own form. */
export const date = (rfc3339: string): string => written(rfc3339, day);

/** The date with the time of day. */
export const dateTime = (rfc3339: string): string => written(rfc3339, minute);

/** "3 hours ago", "yesterday", "in 2 days". */
export function ago(rfc3339: string, now = Date.now()): string {
  const at = Date.parse(rfc3339);
  if (Number.isNaN(at)) return '';
  const seconds = (at - now) / 1000;
  const steps: [Intl.RelativeTimeFormatUnit, number][] = [
    ['year', 31_536_000],
    ['month', 2_592_000],
    ['day', 86_400],
    ['hour', 3600],
    ['minute', 60],
  ];
  for (const [unit, length] of steps) {
    if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit);
  }
  return 'just now';
}

/** 3725 → "1 h 2 min", 125 → "2 min", 40 → "40 s". */
export function duration(seconds: number): string {
  if (!(seconds >= 0)) return '';
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function written(rfc3339: string, form: Intl.DateTimeFormat): string {
  const at = new Date(rfc3339);
  return Number.isNaN(at.getTime()) ? '' : form.format(at);
}
