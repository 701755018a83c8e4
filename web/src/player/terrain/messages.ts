// Messages between the page and the terrain meshing worker.

export type ChunkKey = string;
export type ChunkPlace = [number, number, number];

export const keyOf = ([x, y, z]: ChunkPlace): ChunkKey => `${x},${y},${z}`;

/** To the worker. */
export type ToWorker =
  /** The `terrain` of scene.json, as JSON. */
  | { type: 'start'; settings: string }
  /** A terrain message of the server, unchanged. */
  | { type: 'change'; packet: Uint8Array }
  /** The player's position and the draw distance, in metres. */
  | { type: 'look'; x: number; y: number; z: number; distance: number };

/** Triangles of a chunk; positions in blocks from its lowest corner. */
export interface ChunkMesh {
  place: ChunkPlace;
  positions: Uint8Array;
  normals: Int8Array;
  colors: Uint8Array;
  indices: Uint32Array;
  /** Index of the first transparent triangle. */
  clearFrom: number;
}

/** From the worker. */
export type FromWorker =
  /** Metres along a chunk. */
  | { type: 'ready'; chunkM: number }
  | { type: 'mesh'; mesh: ChunkMesh }
  /** The chunk has no mesh. */
  | { type: 'drop'; place: ChunkPlace }
  | { type: 'failed'; message: string };
