// Order of meshing: changed chunks first, then new ones, nearest first.
import { keyOf, type ChunkKey, type ChunkPlace } from './messages';

/** Hysteresis: chunks are dropped only this much beyond the draw distance, so that walking back and forth does not remesh them. */
const FORGET_M = 48;

export interface GridInfo {
  first: ChunkPlace;
  count: ChunkPlace;
  chunkM: number;
}

export class DrawPlan {
  /** Meshed, or found empty. */
  #done = new Map<ChunkKey, ChunkPlace>();
  #changed = new Map<ChunkKey, ChunkPlace>();
  /** Not meshed yet, the nearest last. */
  #waiting: ChunkPlace[] = [];
  #at: ChunkPlace = [0, 0, 0];
  #distance = 0;

  constructor(private readonly grid: GridInfo) {}

  /** Moves the player; returns the chunks that are now out of range. */
  look(at: ChunkPlace, distance: number): ChunkPlace[] {
    this.#at = at;
    this.#distance = distance;
    const dropped = [...this.#done.values()].filter((place) => this.#away(place) > distance + FORGET_M);
    for (const place of dropped) {
      this.#done.delete(keyOf(place));
      this.#changed.delete(keyOf(place));
    }
    this.#waiting = this.#within(distance).filter((place) => !this.#done.has(keyOf(place)));
    this.#waiting.sort((a, b) => this.#away(b) - this.#away(a));
    return dropped;
  }

  /** Marks chunks for remeshing. Chunks that were never meshed are already queued. */
  change(places: ChunkPlace[]): void {
    for (const place of places) if (this.#done.has(keyOf(place))) this.#changed.set(keyOf(place), place);
  }

  /** The next chunk to mesh; null when all are up to date. */
  next(): ChunkPlace | null {
    let nearest: ChunkPlace | null = null;
    for (const place of this.#changed.values())
      if (!nearest || this.#away(place) < this.#away(nearest)) nearest = place;
    const place = nearest ?? this.#waiting.pop() ?? null;
    if (place) {
      this.#changed.delete(keyOf(place));
      this.#done.set(keyOf(place), place);
    }
    return place;
  }

  /** Height counts more than horizontal distance: views are wide, and towers are rare. */
  #away(place: ChunkPlace): number {
    const { chunkM } = this.grid;
    const side = (axis: 0 | 1 | 2) => (place[axis] + 0.5) * chunkM - this.#at[axis];
    return Math.hypot(side(0), side(1) * 0.5, side(2));
  }

  #within(distance: number): ChunkPlace[] {
    const { first, count, chunkM } = this.grid;
    const range = (axis: 0 | 1 | 2, reach: number): number[] => {
      const from = Math.max(first[axis], Math.floor((this.#at[axis] - reach) / chunkM));
      const to = Math.min(first[axis] + count[axis] - 1, Math.floor((this.#at[axis] + reach) / chunkM));
      return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
    };
    const found: ChunkPlace[] = [];
    for (const y of range(1, distance * 2))
      for (const z of range(2, distance))
        for (const x of range(0, distance)) if (this.#away([x, y, z]) <= distance) found.push([x, y, z]);
    return found;
  }

  get idle(): boolean {
    return this.#changed.size === 0 && this.#waiting.length === 0;
  }

  get distance(): number {
    return this.#distance;
  }
}
