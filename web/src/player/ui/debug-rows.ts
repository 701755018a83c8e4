// The statistics of the debug overlay as text. Pure, so that wording and warnings can be tested.
import type { CoreStats, TickFigures } from '../core/events';

/** In the order they are shown. */
export const DEBUG_GROUPS = ['line', 'traffic', 'prediction', 'world', 'server'] as const;
export type DebugGroup = (typeof DEBUG_GROUPS)[number];

export interface DebugRow {
  group: DebugGroup;
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
  server: TickFigures | null;
}

export function debugRows(stats: CoreStats, page: PageFigures): DebugRow[] {
  const rows: DebugRow[] = [];
  const group =
    (name: DebugGroup) =>
    (label: string, value: string, warn = false) =>
      rows.push({ group: name, name: label, value, warn });
  const line = group('line');
  line('state', page.phase, page.phase !== 'playing');
  line('transport', page.transport ?? '–', page.transport === 'websocket');
  line('server tick', integer(stats.tick));
  line('rtt', milliseconds(stats.rttMs), (stats.rttMs ?? 0) > 200);
  line('jitter', milliseconds(stats.jitterMs), (stats.jitterMs ?? 0) > 40);
  line('loss', stats.loss === undefined ? '–' : `${(stats.loss * 100).toFixed(1)} %`, (stats.loss ?? 0) > 0.05);
  const traffic = group('traffic');
  traffic('in', bytes(stats.bytesInPerS, '/s'));
  traffic('out', bytes(stats.bytesOutPerS, '/s'));
  traffic('snapshot age', milliseconds(stats.snapshotAgeMs), (stats.snapshotAgeMs ?? 0) > 300);
  traffic('shown behind', milliseconds(stats.playbackDelayMs), (stats.playbackDelayMs ?? 0) > 300);
  const prediction = group('prediction');
  prediction('input seq', integer(stats.inputSeq));
  prediction('pending inputs', integer(stats.pendingInputs), (stats.pendingInputs ?? 0) > 30);
  prediction('corrections', integer(stats.corrections));
  prediction('last one', stats.corrections ? `${((stats.lastCorrectionM ?? 0) * 100).toFixed(1)} cm` : '–');
  const world = group('world');
  world('entities', integer(stats.entities));
  world('players', integer(page.players));
  world('script version', integer(stats.scriptVersion));
  world('script traffic', bytes(stats.scriptBytes));
  world('script memory', bytes(page.scriptBytes));
  world('script time', `${page.scriptMs.toFixed(2)} ms`, page.scriptMs > 4);
  world('frames', `${page.fps.toFixed(0)} /s ${page.quality ?? ''}`.trim(), page.fps < 25);
  const server = group('server');
  if (page.server && page.server.stages.length > 0) {
    server('tick takes', `${page.server.tickMs.toFixed(2)} ms`, page.server.tickMs > 10);
    server('longest tick', `${page.server.worstMs.toFixed(2)} ms`, page.server.worstMs > 16);
    // Stages with negligible cost are omitted: most games have no NPCs, many no bodies.
    for (const stage of page.server.stages)
      if (stage.ms >= 0.01) server(stage.name, `${stage.ms.toFixed(2)} ms`, stage.ms > 8);
  }
  return rows;
}

const integer = (value: number | undefined): string => (value === undefined ? '–' : Math.round(value).toString());

export const milliseconds = (value: number | undefined): string =>
  value === undefined ? '–' : `${value.toFixed(value < 10 ? 1 : 0)} ms`;

function bytes(value: number | undefined, suffix = ''): string {
  if (value === undefined) return '–';
  if (value < 1024) return `${Math.round(value)} B${suffix}`;
  if (value < 1024 * 1024) return `${(value / 1024).toFixed(1)} KiB${suffix}`;
  return `${(value / 1024 / 1024).toFixed(1)} MiB${suffix}`;
}
