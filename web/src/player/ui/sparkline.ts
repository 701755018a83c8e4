// The geometry of a small graph: newest value at the right edge, zero at the bottom. Pure.

/** A value over time; null where it is unknown. */
export type Value = number | null;

export interface SparklineShape {
  /** Value at the upper edge: 1, 2 or 5 times a power of ten. */
  top: number;
  line: string;
  /** The same, closed along the bottom. */
  area: string;
  y(value: number): number;
}

/** Unknown values (null) have no point: the line continues to the next known one. */
export function sparkline(
  values: Value[],
  box: { slots: number; width: number; height: number; floor: number },
): SparklineShape {
  const shown = values.slice(-box.slots);
  const known = shown.flatMap((value, index) => (value === null ? [] : [{ value, index }]));
  const top = roundUp(Math.max(box.floor, ...known.map(({ value }) => value)));
  const step = box.width / (box.slots - 1);
  const x = (index: number) => round((index + box.slots - shown.length) * step);
  const y = (value: number) => round(box.height - (value / top) * (box.height - 2));
  const line = known.map(({ value, index }) => `${x(index)},${y(value)}`).join(' ');
  const [first, last] = [known[0], known.at(-1)];
  const area = first && last ? `${x(first.index)},${box.height} ${line} ${x(last.index)},${box.height}` : '';
  return { top, line, area, y };
}

function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const times = [1, 2, 5, 10].find((factor) => value <= factor * power) ?? 10;
  return times * power;
}

const round = (value: number): number => Math.round(value * 10) / 10;
