// What the page and the worker that draws the ground say to each other.

export type ChunkKey = string;
export type ChunkPlace = [number, number, number];

export const keyOf = ([x, y, z]: ChunkPlace): ChunkKey => `${x},${y},${z}`;

/** To the worker. */
export type ToWorker =
  /** The `terrain` of scene.json, as JSON. */
  | { type: 'start'; settings: string }
  /** A message of the server about the ground, as it came. */
  | { type: 'change'; packet: Uint8Array }
  /** Where the player is, and how far the ground is shown, in metres. */
  | { type: 'look'; x: number; y: number; z: number; distance: number };

/** Triangles of a chunk; places in blocks from its lowest corner. */
export interface ChunkMesh {
  place: ChunkPlace;
  positions: Uint8Array;
  normals: Int8Array;
  colors: Uint8Array;
  indices: Uint32Array;
  /** The index from which on triangles can be seen through. */
  clearFrom: number;
}

/** From the worker. */
export type FromWorker =
  /** Metres along a chunk. */
  | { type: 'ready'; chunkM: number }
  | { type: 'mesh'; mesh: ChunkMesh }
  /** Nothing is to be drawn there (any more). */
  | { type: 'drop'; place: ChunkPlace }
  | { type: 'failed'; message: string };
