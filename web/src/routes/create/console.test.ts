// The lists of the console page: retention, filters, script costs.
import { expect, test } from 'vitest';
import type { ConsoleEntry, ConsoleScript, ConsoleWorld } from '../../generated/rest';
import { append, bytes, costs, from, LINES_KEPT, place, share, visible } from './console';

const line = (number: number, level = 'info', world = 'w1'): ConsoleEntry => ({
  number,
  level,
  at: '',
  world_id: world,
  room_code: 'ABC',
  tick: 1,
  script: 'Workspace/A.luau',
  line: 3,
  message: `line ${number}`,
  source_line: null,
  stack: '',
  revision: '',
  hash: '',
  client: null,
});
const script = (path: string, cpu: number): ConsoleScript => ({
  path,
  hash: 'h',
  cpu_ms_per_s: cpu,
  memory_bytes: 1024,
  instances: 1,
  errors: 1,
  stops: 0,
  disabled: 0,
});
const world = (id: string, running: boolean, scripts: ConsoleScript[]): ConsoleWorld => ({
  world_id: id,
  room_code: 'ABC',
  running,
  players: 1,
  tick_ms_p99: 1,
  heard_at: '',
  scripts,
});

test('lines are added once, bounded, and reset when the server restarts', () => {
  let lines = append([], [line(1), line(2)]);
  expect(append(lines, [])).toBe(lines);
  lines = append(lines, [line(3)]);
  expect(lines.map((l) => l.number)).toEqual([1, 2, 3]);
  expect(append(lines, [line(1), line(2)]).map((l) => l.number)).toEqual([1, 2]);
  const many = Array.from({ length: LINES_KEPT + 10 }, (_, i) => line(i + 10));
  expect(append(lines, many)).toHaveLength(LINES_KEPT);
});

test('filters by level and world, the newest first', () => {
  const lines = [line(1), line(2, 'warn'), line(3, 'error', 'w2'), line(4)];
  const numbers = (level: 'all' | 'warn' | 'error', id: string | null) =>
    visible(lines, level, id).map((l) => l.number);
  expect(numbers('all', null)).toEqual([4, 3, 2, 1]);
  expect(numbers('warn', null)).toEqual([3, 2]);
  expect(numbers('error', 'w1')).toEqual([]);
  expect(place(line(1))).toBe('Workspace/A.luau:3');
  expect(place({ ...line(1), line: null })).toBe('Workspace/A.luau');
});

test('costs are summed over the worlds that run', () => {
  const worlds = [
    world('w1', true, [script('A', 1), script('B', 5)]),
    world('w2', true, [script('A', 7)]),
    world('w3', false, [script('A', 100)]),
  ];
  const all = costs(worlds, null);
  expect(all.map((s) => [s.path, s.cpu_ms_per_s, s.errors])).toEqual([
    ['A', 8, 2],
    ['B', 5, 1],
  ]);
  expect(costs(worlds, 'w2').map((s) => s.path)).toEqual(['A']);
});

test('values are formatted readably', () => {
  expect([bytes(12), bytes(2048), bytes(20 * 1024), bytes(3 * 1024 * 1024)]).toEqual([
    '12 B',
    '2.0 KiB',
    '20 KiB',
    '3.0 MiB',
  ]);
  expect([share(0, 10), share(0.001, 10), share(5, 10), share(50, 10)]).toEqual(['0%', '1.0%', '50.0%', '100.0%']);
});

test('a line from browsers names them and the count', () => {
  expect(from({ browser: 'Firefox on Linux', count: 1, players: 1 })).toBe('Firefox on Linux');
  expect(from({ browser: 'Firefox on Linux', count: 3, players: 2 })).toBe('Firefox on Linux ×3');
});
