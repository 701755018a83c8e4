// Performance marks of joining a world, which the browser's tools show as well.

/** In the order in which they usually happen. */
export type Moment =
  | 'start'
  | 'login'
  | 'join'
  | 'engine'
  | 'connecting'
  /** WebTransport was given up. */
  | 'fallback'
  | 'connected'
  | 'welcome'
  | 'renderer'
  | 'scene'
  /** The first picture with the own character in it. */
  | 'playing';

const PREFIX = 'frolic:';

/** Notes that something happened now. The last time counts: a page may come back to a world many times. */
export function mark(moment: Moment): void {
  performance.clearMarks(PREFIX + moment);
  performance.mark(PREFIX + moment);
}

/** When what happened, in milliseconds since the page was opened. */
export function moments(): Partial<Record<Moment, number>> {
  const marks = performance.getEntriesByType('mark').filter(({ name }) => name.startsWith(PREFIX));
  return Object.fromEntries(marks.map(({ name, startTime }) => [name.slice(PREFIX.length), startTime]));
}
