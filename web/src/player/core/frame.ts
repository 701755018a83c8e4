// The layout of ClientCore.frame(): sixteen numbers for each visible moving entity.
// Free of three.js: the session reads frames before the renderer is loaded.

export interface Point {
  x: number;
  y: number;
  z: number;
}

export const FRAME_STRIDE = 16;
export const KIND_PLAYER = 1;
const FLAG_GROUNDED = 1;
const FLAG_OWN = 2;
const FLAG_DEAD = 4;
/** The bits above the flags are the mood of an NPC; see npc.ts. */
const MOOD_SHIFT = 3;

/** One record of the frame. The same object is reused for each record: copy values that must persist. */
export class FrameRecord {
  id = 0;
  isPlayer = false;
  /** State and suspicion of an NPC; 0 for other entities. */
  mood = 0;
  /** Number of the definition it was spawned from; 0 for an entity of the scene. */
  definition = 0;
  grounded = false;
  own = false;
  /** Knocked out. */
  dead = false;
  readonly position: Point = { x: 0, y: 0, z: 0 };
  readonly rotation = { x: 0, y: 0, z: 0, w: 1 };
  readonly velocity: Point = { x: 0, y: 0, z: 0 };
  yaw = 0;
  pitch = 0;

  read(frame: Float32Array, offset: number): this {
    const at = (i: number) => frame[offset + i] ?? 0;
    const flags = at(3);
    this.id = idAt(frame, offset);
    this.isPlayer = at(1) === KIND_PLAYER;
    this.definition = at(2);
    this.grounded = (flags & FLAG_GROUNDED) !== 0;
    this.own = (flags & FLAG_OWN) !== 0;
    this.dead = (flags & FLAG_DEAD) !== 0;
    this.mood = flags >> MOOD_SHIFT;
    setPoint(this.position, at(4), at(5), at(6));
    setPoint(this.rotation, at(7), at(8), at(9));
    this.rotation.w = at(10);
    setPoint(this.velocity, at(11), at(12), at(13));
    this.yaw = at(14);
    this.pitch = at(15);
    return this;
  }
}

/**
 * The id of the record at `offset`. It is the bits of the float and not its value: a float holds whole numbers only up
 * to 2^24, and ids are never used twice, so a long-lived world goes beyond that.
 */
export function idAt(frame: Float32Array, offset: number): number {
  return bitsOf(frame)[offset] ?? 0;
}

/** Writes an id as the core does. */
export function setId(frame: Float32Array, offset: number, id: number): void {
  bitsOf(frame)[offset] = id;
}

let lastFrame: Float32Array = new Float32Array(0);
let lastBits: Uint32Array = new Uint32Array(0);

/** The same memory as integers; created once per frame. */
function bitsOf(frame: Float32Array): Uint32Array {
  if (frame !== lastFrame)
    [lastFrame, lastBits] = [frame, new Uint32Array(frame.buffer, frame.byteOffset, frame.length)];
  return lastBits;
}

/** Walks over all records of a frame. */
export function* records(frame: Float32Array): Generator<FrameRecord> {
  const record = new FrameRecord();
  for (let offset = 0; offset + FRAME_STRIDE <= frame.length; offset += FRAME_STRIDE) {
    yield record.read(frame, offset);
  }
}

function setPoint(point: Point, x: number, y: number, z: number): void {
  point.x = x;
  point.y = y;
  point.z = z;
}
