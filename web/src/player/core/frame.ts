// Reads ClientCore.frame(): a record for each visible moving entity. Free of three.js: the session reads frames before
// the renderer is loaded.
import {
  FLAG_DEAD,
  FLAG_GROUNDED,
  FLAG_OWN,
  FRAME_DEFINITION,
  FRAME_FLAGS,
  FRAME_ID,
  FRAME_KIND,
  FRAME_PITCH,
  FRAME_POSITION,
  FRAME_ROTATION,
  FRAME_STRIDE,
  FRAME_VELOCITY,
  FRAME_YAW,
  KIND_CHARACTER,
  MOOD_SHIFT,
} from '../../generated/layout';

export interface Point {
  x: number;
  y: number;
  z: number;
}

/** One record of the frame. The same object is reused for each record: copy values that must persist. */
export class FrameRecord {
  id = 0;
  isPlayer = false;
  /** State and suspicion of an NPC, see npc.ts; 0 for other entities. */
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
    const flags = at(FRAME_FLAGS);
    this.id = idAt(frame, offset + FRAME_ID);
    this.isPlayer = at(FRAME_KIND) === KIND_CHARACTER;
    this.definition = at(FRAME_DEFINITION);
    this.grounded = (flags & FLAG_GROUNDED) !== 0;
    this.own = (flags & FLAG_OWN) !== 0;
    this.dead = (flags & FLAG_DEAD) !== 0;
    this.mood = flags >> MOOD_SHIFT;
    setPoint(this.position, frame, offset + FRAME_POSITION);
    setPoint(this.rotation, frame, offset + FRAME_ROTATION);
    this.rotation.w = at(FRAME_ROTATION + 3);
    setPoint(this.velocity, frame, offset + FRAME_VELOCITY);
    this.yaw = at(FRAME_YAW);
    this.pitch = at(FRAME_PITCH);
    return this;
  }
}

/**
 * The id at `offset`. It is the bits of the float and not its value: a float holds whole numbers only up
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

function setPoint(point: Point, frame: Float32Array, at: number): void {
  point.x = frame[at] ?? 0;
  point.y = frame[at + 1] ?? 0;
  point.z = frame[at + 2] ?? 0;
}
