// Processes console responses for display. Pure, so that it can be tested without a browser.
import type { ConsoleClient, ConsoleEntry, ConsoleScript, ConsoleWorld } from '../../generated/rest';

export type Level = 'all' | 'warn' | 'error';

/** Maximum lines; the oldest are dropped. */
export const LINES_KEPT = 1000;
/** Default budget of a world's scripts: 4 ms per tick at 60 Hz, and 64 MiB. */
export const CPU_BUDGET_MS_PER_S = 240;
export const MEMORY_BUDGET_BYTES = 64 * 1024 * 1024;

/** Appends new lines. A decreasing number means that the server restarted. */
export function append(known: ConsoleEntry[], fresh: ConsoleEntry[]): ConsoleEntry[] {
  if (fresh.length === 0) return known;
  const last = known.at(-1)?.number ?? 0;
  const restarted = (fresh[0]?.number ?? 0) <= last;
  return [...(restarted ? [] : known), ...fresh].slice(-LINES_KEPT);
}

/** The lines to show, the newest first. */
export function visible(lines: ConsoleEntry[], level: Level, worldId: string | null): ConsoleEntry[] {
  const wanted = (line: ConsoleEntry): boolean =>
    (worldId === null || line.world_id === worldId) &&
    (level === 'all' || line.level === 'error' || (level === 'warn' && line.level === 'warn'));
  return lines.filter(wanted).reverse();
}

/** `Main.luau:12`, or the script alone. */
export function place(line: ConsoleEntry): string {
  return line.line === null ? line.script : `${line.script}:${line.line}`;
}

/** `Firefox on Linux ×3`: the reporting browsers and their counts. */
export function from({ browser, count }: ConsoleClient): string {
  return count === 1 ? browser : `${browser} ×${count}`;
}

/** The scripts of all worlds, or of one, summed by path; the most expensive first. */
export function costs(worlds: ConsoleWorld[], worldId: string | null): ConsoleScript[] {
  const sums = new Map<string, ConsoleScript>();
  for (const world of worlds) {
    if (!world.running || (worldId !== null && world.world_id !== worldId)) continue;
    for (const script of world.scripts) {
      const sum = sums.get(script.path);
      sums.set(script.path, sum ? add(sum, script) : script);
    }
  }
  return [...sums.values()].sort((a, b) => b.cpu_ms_per_s - a.cpu_ms_per_s || a.path.localeCompare(b.path));
}

function add(a: ConsoleScript, b: ConsoleScript): ConsoleScript {
  return {
    path: a.path,
    hash: a.hash === b.hash ? a.hash : '',
    cpu_ms_per_s: a.cpu_ms_per_s + b.cpu_ms_per_s,
    memory_bytes: a.memory_bytes + b.memory_bytes,
    instances: a.instances + b.instances,
    errors: a.errors + b.errors,
    stops: a.stops + b.stops,
    disabled: a.disabled + b.disabled,
  };
}

/** `1.4 MiB`, short enough for a column. */
export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  const kib = count / 1024;
  return kib < 1024 ? `${kib.toFixed(kib < 10 ? 1 : 0)} KiB` : `${(kib / 1024).toFixed(1)} MiB`;
}

/** A share of a budget as a width, at least a minimum when it is not zero. */
export function share(value: number, budget: number): string {
  if (value <= 0) return '0%';
  return `${Math.max(1, Math.min(100, (100 * value) / budget)).toFixed(1)}%`;
}

/** `14:03:59` in the reader's own time zone. */
export function clock(at: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : date.toLocaleTimeString(undefined, { hour12: false });
}
