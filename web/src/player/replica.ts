// The replicated world as client scripts query it: entities of the scene, moving entities, and players.
import type { PlayerInfo, WireValue } from './events';
import { FRAME_STRIDE, FrameRecord, idAt } from './frame';
import type { EntityProperty, Found, PlayerProperty, Triple, WorldHost } from './luau/host';
import { npcState, npcSuspicion } from './npc';
import type { Part } from './parts';

/** The parts of a running session that are asked. */
export interface KnownSource {
  /** Everything that moves now; see frame.ts. */
  frame(): Float32Array;
  readonly parts: ReadonlyMap<number, Part>;
  /** Attributes of a player's character, which is no part. */
  attributes(id: number): Record<string, WireValue> | undefined;
  readonly players: readonly PlayerInfo[];
  /** Players who left not long ago, by number: handlers may still ask for their names. */
  readonly gonePlayers: ReadonlyMap<number, PlayerInfo>;
  playerNumber(): number;
  /** The first solid along a ray, and with `characters` also the character of another player or an NPC. */
  raycast(
    origin: Triple,
    direction: Triple,
    max: number,
    tag: string,
    ignore: number[],
    characters: boolean,
  ): ReturnType<WorldHost['raycast']>;
}

const DEGREES = 180 / Math.PI;
/** Scripts query the terrain with rays of its own. */
const TERRAIN = 0;

export class KnownWorld implements WorldHost {
  #frame: Float32Array | null = null;
  #offsets = new Map<number, number>();
  readonly #record = new FrameRecord();

  constructor(private readonly source: KnownSource) {}

  exists(id: number): boolean {
    return this.#moving(id) !== null || this.source.parts.has(id);
  }

  entity(id: number, property: EntityProperty): Found {
    const moving = this.#moving(id);
    const part = this.source.parts.get(id);
    if (!moving && !part) return undefined;
    switch (property) {
      case 'position':
        return { $v: moving ? triple(moving.position) : part!.position };
      case 'velocity':
        return { $v: moving ? triple(moving.velocity) : [0, 0, 0] };
      case 'rotation':
        return { $v: degrees(moving?.rotation ?? quaternion(part!.rotation)) };
      case 'name':
        return this.#name(id, moving);
      case 'color':
        return part?.color ?? null;
      case 'tags':
        return [...(part?.tags ?? [])];
      case 'pattern':
        return part?.material.pattern ?? 'plain';
    }
  }

  attribute(id: number, name: string): WireValue {
    const attributes = this.source.parts.get(id)?.attributes ?? this.source.attributes(id);
    return (attributes && own(attributes, name)) ?? null;
  }

  find(word: string): number[] {
    return this.#all().filter((id) => {
      return this.#name(id, this.#moving(id)) === word || this.#hasTag(id, word);
    });
  }

  inRadius(center: Triple, radius: number): number[] {
    return this.#all().filter((id) => {
      const moving = this.#moving(id);
      const [x, y, z] = moving ? triple(moving.position) : this.source.parts.get(id)!.position;
      return Math.hypot(x - center[0], y - center[1], z - center[2]) <= radius;
    });
  }

  raycast: WorldHost['raycast'] = (origin, direction, max, tag, ignore) =>
    this.source.raycast(origin, direction, max, tag, [TERRAIN, ...ignore], true);

  /** The first solid along a ray; terrain has the id 0. */
  solidAlong(origin: Triple, direction: Triple, max: number) {
    return this.source.raycast(origin, direction, max, '', [], false);
  }

  players(): number[] {
    return this.source.players.map((player) => player.number);
  }

  playerOf(entity: number): number {
    return this.source.players.find((player) => player.entityId === entity)?.number ?? 0;
  }

  localPlayer(): number {
    return this.source.playerNumber();
  }

  player(number: number, property: PlayerProperty): Found {
    const player = this.#player(number);
    if (!player) return undefined;
    switch (property) {
      case 'name':
        return player.name;
      case 'userId':
        return player.id;
      case 'character':
        return player.entityId > 0 && this.exists(player.entityId) ? { $e: player.entityId } : null;
      case 'team':
        return player.team;
    }
  }

  stat(number: number, name: string): WireValue {
    const stat = this.#player(number)?.stats.find((known) => known.name === name);
    return stat ? (stat.number ?? stat.text) : null;
  }

  npcs(): number[] {
    this.#refresh();
    return [...this.#offsets.keys()].filter((id) => this.#moving(id)?.mood).sort((a, b) => a - b);
  }

  npc(id: number): { state: string; suspicion: number } | null {
    const mood = this.#moving(id)?.mood ?? 0;
    const state = npcState(mood);
    return state && { state, suspicion: npcSuspicion(mood) };
  }

  #player(number: number): PlayerInfo | undefined {
    return this.source.players.find((player) => player.number === number) ?? this.source.gonePlayers.get(number);
  }

  #name(id: number, moving: FrameRecord | null): string {
    if (moving?.isPlayer && !moving.mood)
      return this.source.players.find((player) => player.entityId === id)?.name ?? 'Player';
    return this.source.parts.get(id)?.name ?? 'Entity';
  }

  #hasTag(id: number, tag: string): boolean {
    return this.source.parts.get(id)?.tags.includes(tag) ?? false;
  }

  #all(): number[] {
    this.#refresh();
    const ids = new Set([...this.#offsets.keys(), ...this.source.parts.keys()]);
    return [...ids].sort((a, b) => a - b);
  }

  /** The record of something that moves. The same object each time: copy what must last. */
  #moving(id: number): FrameRecord | null {
    this.#refresh();
    const offset = this.#offsets.get(id);
    return offset === undefined || !this.#frame ? null : this.#record.read(this.#frame, offset);
  }

  /** Indexes a new frame, once. */
  #refresh(): void {
    const frame = this.source.frame();
    if (frame === this.#frame) return;
    this.#frame = frame;
    this.#offsets.clear();
    for (let at = 0; at + FRAME_STRIDE <= frame.length; at += FRAME_STRIDE) this.#offsets.set(idAt(frame, at), at);
  }
}

const own = <T>(table: Record<string, T>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

const triple = (point: { x: number; y: number; z: number }): Triple => [point.x, point.y, point.z];

const quaternion = ([x, y, z, w]: Part['rotation']) => ({ x, y, z, w });

/** Degrees around x, y and z, as `degrees_from_quaternion` in crates/script/src/rotation.rs gives them. */
export function degrees({ x, y, z, w }: { x: number; y: number; z: number; w: number }): Triple {
  const sine = Math.max(-1, Math.min(1, 2 * (w * x - y * z)));
  const upright = Math.abs(sine) <= 0.99999;
  const yaw = upright
    ? Math.atan2(2 * (x * z + w * y), 1 - 2 * (x * x + y * y))
    : Math.atan2(-2 * (x * z - w * y), 1 - 2 * (y * y + z * z));
  const roll = upright ? Math.atan2(2 * (x * y + w * z), 1 - 2 * (x * x + z * z)) : 0;
  return [Math.asin(sine) * DEGREES, yaw * DEGREES, roll * DEGREES];
}
