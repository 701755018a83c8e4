// The rows of the overlay: complete, readable, with dashes for unknown values.
import { expect, test } from 'vitest';
import { debugRows } from './debug-rows';

const page = {
  transport: 'webtransport',
  phase: 'playing',
  fps: 59.7,
  quality: 'high',
  scriptBytes: 300_000,
  scriptMs: 0.123,
  players: 2,
  server: null,
};
const value = (rows: ReturnType<typeof debugRows>, name: string) => rows.find((row) => row.name === name);

test('every figure has a row', () => {
  const names = debugRows({}, page).map((row) => row.name);
  for (const name of [
    'state',
    'transport',
    'server tick',
    'rtt',
    'jitter',
    'loss',
    'input seq',
    'pending inputs',
    'corrections',
    'in',
    'out',
    'snapshot age',
    'entities',
    'script memory',
    'script time',
  ]) {
    expect(names).toContain(name);
  }
});

test('stages of the server that take time have a row', () => {
  const server = {
    tickMs: 1.234,
    worstMs: 20,
    stages: [
      { name: 'physics', ms: 0.5 },
      { name: 'npcs', ms: 0 },
    ],
  };
  const rows = debugRows({}, { ...page, server });
  expect(value(rows, 'tick takes')?.value).toBe('1.23 ms');
  expect(value(rows, 'longest tick')?.warn).toBe(true);
  expect(value(rows, 'physics')?.value).toBe('0.50 ms');
  expect(value(rows, 'npcs')).toBeUndefined();
});

test('units, dashes and warnings', () => {
  const rows = debugRows({ rttMs: 4.25, loss: 0.1, bytesInPerS: 20_480 }, { ...page, transport: 'websocket' });
  expect(value(rows, 'rtt')?.value).toBe('4.3 ms');
  expect(value(rows, 'loss')).toMatchObject({ value: '10.0 %', warn: true });
  expect(value(rows, 'in')?.value).toBe('20.0 KiB/s');
  expect(value(rows, 'jitter')?.value).toBe('–');
  expect(value(rows, 'transport')?.warn).toBe(true);
  expect(value(rows, 'script memory')?.value).toBe('293.0 KiB');
});
