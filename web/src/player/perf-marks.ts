// Performance marks of joining a world, also visible in the browser's developer tools.

/** In the order in which they usually happen. */
export type Moment =
  | 'start'
  | 'login'
  | 'join'
  | 'engine'
  | 'connecting'
  /** WebTransport timed out or failed. */
  | 'fallback'
  | 'connected'
  | 'welcome'
  | 'renderer'
  | 'scene'
  /** First frame with the own character. */
  | 'playing';

const PREFIX = 'frolic:';

/** Records a mark. The last time counts, because a page may rejoin many times. */
export function mark(moment: Moment): void {
  performance.clearMarks(PREFIX + moment);
  performance.mark(PREFIX + moment);
}

/** All marks, in milliseconds since navigation start. */
export function moments(): Partial<Record<Moment, number>> {
  const marks = performance.getEntriesByType('mark').filter(({ name }) => name.startsWith(PREFIX));
  return Object.fromEntries(marks.map(({ name, startTime }) => [name.slice(PREFIX.length), startTime]));
}
