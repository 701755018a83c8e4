// The page's side of the terrain meshing worker.
import type { FromWorker, ToWorker } from './messages';

/** Metres the player moves before the worker receives the new position. */
const LOOK_M = 6;

export class TerrainFeed {
  #worker: Worker;
  #looked: [number, number, number, number] | null = null;

  /** `settings` are those of the terrain, as JSON. */
  constructor(settings: string, onmessage: (message: FromWorker) => void) {
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module', name: 'terrain' });
    this.#worker.onmessage = ({ data }: MessageEvent<FromWorker>) => onmessage(data);
    this.#worker.onerror = (event) => console.error('the ground cannot be drawn:', event.message);
    this.#tell({ type: 'start', settings });
  }

  change(packet: Uint8Array): void {
    this.#tell({ type: 'change', packet }, [packet.buffer]);
  }

  /** Updates the player's position; called every frame. */
  look(x: number, y: number, z: number, distance: number): void {
    const last = this.#looked;
    if (last && last[3] === distance && Math.hypot(x - last[0], y - last[1], z - last[2]) < LOOK_M) return;
    this.#looked = [x, y, z, distance];
    this.#tell({ type: 'look', x, y, z, distance });
  }

  dispose(): void {
    this.#worker.terminate();
  }

  #tell(message: ToWorker, transfer: Transferable[] = []): void {
    this.#worker.postMessage(message, transfer);
  }
}
