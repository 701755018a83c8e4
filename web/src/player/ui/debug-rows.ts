// The figures of the debug overlay as text. Pure, so that the wording and the warning lines can be tested.
import type { CoreStats } from '../events';

export interface DebugRow {
  name: string;
  value: string;
  warn: boolean;
}

export interface PageFigures {
  transport: string | null;
  phase: string;
  fps: number;
  quality: string | null;
  scriptBytes: number;
  scriptMs: number;
  players: number;
}

export function debugRows(stats: CoreStats, page: PageFigures): DebugRow[] {
  const row = (name: string, value: string, warn = false): DebugRow => ({ name, value, warn });
  return [
    row('state', page.phase),
    row('transport', page.transport ?? '–', page.transport === 'websocket'),
    row('server tick', integer(stats.tick)),
    row('rtt', milliseconds(stats.rttMs), (stats.rttMs ?? 0) > 200),
    row('jitter', milliseconds(stats.jitterMs), (stats.jitterMs ?? 0) > 40),
    row('loss', stats.loss === undefined ? '–' : `${(stats.loss * 100).toFixed(1)} %`, (stats.loss ?? 0) > 0.05),
    row('input seq', integer(stats.inputSeq)),
    row('pending inputs', integer(stats.pendingInputs), (stats.pendingInputs ?? 0) > 30),
    row('corrections', integer(stats.corrections)),
    row('in', bytes(stats.bytesInPerS, '/s')),
    row('out', bytes(stats.bytesOutPerS, '/s')),
    row('snapshot age', milliseconds(stats.snapshotAgeMs), (stats.snapshotAgeMs ?? 0) > 300),
    row('entities', integer(stats.entities)),
    row('players', integer(page.players)),
    row('script memory', bytes(page.scriptBytes)),
    row('script time', `${page.scriptMs.toFixed(2)} ms`, page.scriptMs > 4),
    row('frames', `${page.fps.toFixed(0)} /s ${page.quality ?? ''}`.trim(), page.fps < 25),
  ];
}

const integer = (value: number | undefined): string => (value === undefined ? '–' : Math.round(value).toString());

const milliseconds = (value: number | undefined): string => (value === undefined ? '–' : `${value.toFixed(value < 10 ? 1 : 0)} ms`);

function bytes(value: number | undefined, suffix = ''): string {
  if (value === undefined) return '–';
  if (value < 1024) return `${Math.round(value)} B${suffix}`;
  if (value < 1024 * 1024) return `${(value / 1024).toFixed(1)} KiB${suffix}`;
  return `${(value / 1024 / 1024).toFixed(1)} MiB${suffix}`;
}
