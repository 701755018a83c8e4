// The arithmetic of Chart.svelte: round axis steps, positions, labels.

/** Numbers over one axis; `null` is a gap. */
export interface Series {
  name: string;
  values: readonly (number | null)[];
}

/** Round steps from 0 to at least `max`: 0, 5, 10, 15. At most `most` + 1 of them. */
export function steps(max: number, most = 4, wholeNumbers = true): number[] {
  const top = Number.isFinite(max) && max > 0 ? max : 1;
  const rough = top / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step =
    [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.999) ?? power * 10;
  if (wholeNumbers) step = Math.max(1, Math.ceil(step));
  const count = Math.ceil(top / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

/** Which of `count` labels to show, at most `most`, including the first and the last. */
export function labelled(count: number, most: number): number[] {
  if (count <= 0) return [];
  if (count <= most) return Array.from({ length: count }, (_, index) => index);
  const gaps = Math.max(1, most - 1);
  return Array.from({ length: gaps + 1 }, (_, index) => Math.round((index * (count - 1)) / gaps));
}

/** A path through the points, interrupted at gaps. An isolated point is a short dash. */
export function linePath(
  values: readonly (number | null)[],
  x: (index: number) => number,
  y: (value: number) => number,
): string {
  let path = '';
  let drawing = false;
  values.forEach((value, index) => {
    if (value === null) {
      drawing = false;
      return;
    }
    const alone = !drawing && (values[index + 1] ?? null) === null;
    path += `${drawing ? 'L' : 'M'}${round(x(index))} ${round(y(value))}${alone ? 'h0.1' : ''}`;
    drawing = true;
  });
  return path;
}

/** The largest number of all series; 0 when there is none. */
export function largest(series: readonly Series[]): number {
  let most = 0;
  for (const { values } of series) for (const value of values) if (value !== null && value > most) most = value;
  return most;
}

const round = (value: number): number => Math.round(value * 10) / 10;
