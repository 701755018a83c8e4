// The geometry of a small graph: newest value at the right edge, zero at the bottom. Pure.

export interface SparklineShape {
  /** Value at the upper edge: 1, 2 or 5 times a power of ten. */
  top: number;
  line: string;
  /** The same, closed along the bottom. */
  area: string;
  y(value: number): number;
}

export function sparkline(values: number[], box: { slots: number; width: number; height: number; floor: number }): SparklineShape {
  const top = roundUp(Math.max(box.floor, ...values));
  const step = box.width / (box.slots - 1);
  const shown = values.slice(-box.slots);
  const x = (index: number) => round((index + box.slots - shown.length) * step);
  const y = (value: number) => round(box.height - (value / top) * (box.height - 2));
  const line = shown.map((value, index) => `${x(index)},${y(value)}`).join(' ');
  const area = shown.length ? `${x(0)},${box.height} ${line} ${x(shown.length - 1)},${box.height}` : '';
  return { top, line, area, y };
}

function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const times = [1, 2, 5, 10].find((factor) => value <= factor * power) ?? 10;
  return times * power;
}

const round = (value: number): number => Math.round(value * 10) / 10;
