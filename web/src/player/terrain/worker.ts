// Meshes the terrain off the main thread: keeps a copy of it (created from the scene, updated by server messages, as
// in the client core) and turns chunks into triangles, nearest first.
import { prepareCore, type TerrainMesher } from '../core/core';
import type { ChunkPlace, FromWorker, ToWorker } from './messages';
import { DrawPlan } from './plan';

/** Length of a slice of work before the worker handles messages again. */
const SLICE_MS = 8;

let mesher: TerrainMesher | null = null;
let plan: DrawPlan | null = null;
let working = false;
/** Messages received while the module was loading. */
let early: ToWorker[] | null = [];
const turn = new MessageChannel();

const tell = (message: FromWorker, transfer: Transferable[] = []) => self.postMessage(message, { transfer });

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  if (data.type === 'start') void start(data.settings);
  else if (early) early.push(data);
  else take(data);
};
turn.port1.onmessage = work;

async function start(settings: string): Promise<void> {
  try {
    const { TerrainMesher } = await prepareCore();
    mesher = new TerrainMesher(settings);
    const [x, y, z, countX, countY, countZ, chunkM] = mesher.grid() as unknown as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    plan = new DrawPlan({ first: [x, y, z], count: [countX, countY, countZ], chunkM });
    tell({ type: 'ready', chunkM });
    const waiting = early ?? [];
    early = null;
    waiting.forEach(take);
  } catch (error) {
    tell({ type: 'failed', message: error instanceof Error ? error.message : String(error) });
  }
}

function take(message: ToWorker): void {
  if (!mesher || !plan) return;
  if (message.type === 'change') {
    const numbers = mesher.apply(message.packet);
    const places: ChunkPlace[] = [];
    for (let at = 0; at + 2 < numbers.length; at += 3) places.push([numbers[at]!, numbers[at + 1]!, numbers[at + 2]!]);
    plan.change(places);
  } else if (message.type === 'look') {
    for (const place of plan.look([message.x, message.y, message.z], message.distance)) tell({ type: 'drop', place });
  }
  if (!working) {
    working = true;
    turn.port2.postMessage(null);
  }
}

/** Runs one slice of work, then yields so that queued messages are handled. */
function work(): void {
  const began = performance.now();
  while (mesher && plan && performance.now() - began < SLICE_MS) {
    const place = plan.next();
    if (!place) {
      working = false;
      return;
    }
    draw(mesher, place);
  }
  turn.port2.postMessage(null);
}

function draw(mesher: TerrainMesher, place: ChunkPlace): void {
  if (!mesher.make(...place)) return tell({ type: 'drop', place });
  const mesh = {
    place,
    positions: mesher.take_positions(),
    normals: mesher.take_normals(),
    colors: mesher.take_colors(),
    indices: mesher.take_indices(),
    clearFrom: mesher.clear_from(),
  };
  const arrays = [mesh.positions, mesh.normals, mesh.colors, mesh.indices];
  tell(
    { type: 'mesh', mesh },
    arrays.map(({ buffer }) => buffer as ArrayBuffer),
  );
}
