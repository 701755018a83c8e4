// The replicated world as client scripts query it: entities of the scene, moving entities, and players.
import type { PlayerInfo, WireValue } from './events';
import { FRAME_STRIDE, FrameRecord, idAt } from './frame';
import type { EntityProperty, Found, PlayerProperty, Triple, WorldHost } from './luau/host';
import { npcState, npcSuspicion } from './npc';
import { prefabNames } from './prefabs';
import { type Components, type Part, resolveParts, type SceneData, type SceneEntity } from './scene';

/** The parts of a running session that are asked. */
export interface KnownSource {
  /** Everything that moves now; see frame.ts. */
  frame(): Float32Array;
  scene(): SceneData | null;
  definition(index: number): Components | undefined;
  details(id: number): { attributes: Record<string, WireValue>; looks: { color: Triple | null } } | undefined;
  /** Entities that the core said are gone. */
  readonly removed: ReadonlySet<number>;
  readonly players: readonly PlayerInfo[];
  /** Players who left not long ago, by number: handlers may still ask for their names. */
  readonly gonePlayers: ReadonlyMap<number, PlayerInfo>;
  playerNumber(): number;
  raycast(
    origin: Triple,
    direction: Triple,
    max: number,
    accepts: (id: number) => boolean,
  ): { id: number; distance: number; normal: Triple } | null;
}

const DEGREES = 180 / Math.PI;

export class KnownWorld implements WorldHost {
  #frame: Float32Array | null = null;
  #offsets = new Map<number, number>();
  #scene: SceneData | null = null;
  #parts = new Map<number, Part>();
  #sceneEntities = new Map<number, SceneEntity>();
  #prefabs: string[] = [];
  readonly #record = new FrameRecord();

  constructor(private readonly source: KnownSource) {}

  exists(id: number): boolean {
    return this.#moving(id) !== null || this.#standing(id) !== undefined;
  }

  entity(id: number, property: EntityProperty): Found {
    const moving = this.#moving(id);
    const part = this.#standing(id);
    if (!moving && !part) return undefined;
    switch (property) {
      case 'position':
        return { $v: triple(moving?.position ?? part!.placement.position) };
      case 'velocity':
        return { $v: moving ? triple(moving.velocity) : [0, 0, 0] };
      case 'rotation':
        return { $v: degrees(moving?.rotation ?? part!.placement.rotation) };
      case 'name':
        return this.#name(id, moving);
      case 'color':
        return this.#color(id, moving);
      case 'tags':
        return [...(this.#components(id, moving)?.Tag ?? [])];
      case 'pattern':
        return this.#components(id, moving)?.Material?.pattern ?? 'plain';
    }
  }

  attribute(id: number, name: string): WireValue {
    const told = this.source.details(id);
    if (told) return own(told.attributes, name) ?? null;
    const attributes = this.#components(id, this.#moving(id))?.Attributes;
    return (attributes && own(attributes, name)) ?? null;
  }

  find(word: string): number[] {
    return this.#all().filter((id) => {
      const moving = this.#moving(id);
      return this.#name(id, moving) === word || (this.#components(id, moving)?.Tag ?? []).includes(word);
    });
  }

  inRadius(center: Triple, radius: number): number[] {
    return this.#all().filter((id) => {
      const { x, y, z } = this.#moving(id)?.position ?? this.#standing(id)!.placement.position;
      return Math.hypot(x - center[0], y - center[1], z - center[2]) <= radius;
    });
  }

  raycast(origin: Triple, direction: Triple, max: number, tag: string, ignore: number[]) {
    const passes = new Set(ignore);
    const wanted = (id: number) => !tag || (this.#components(id, this.#moving(id))?.Tag ?? []).includes(tag);
    return this.source.raycast(origin, direction, max, (id) => !passes.has(id) && wanted(id));
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
    const scene = this.#sceneEntities.get(id);
    if (scene) return scene.name ?? '';
    return (moving && this.#prefabs[moving.definition - 1]) ?? 'Entity';
  }

  #color(id: number, moving: FrameRecord | null): WireValue {
    const told = this.source.details(id)?.looks.color;
    if (told) return `#${told.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
    return this.#components(id, moving)?.Material?.color ?? null;
  }

  #components(id: number, moving: FrameRecord | null): Components | undefined {
    if (moving && moving.definition > 0) return this.source.definition(moving.definition);
    return this.#parts.get(id)?.components;
  }

  #all(): number[] {
    this.#refresh();
    const ids = new Set(this.#offsets.keys());
    for (const id of this.#parts.keys()) if (!this.source.removed.has(id)) ids.add(id);
    return [...ids].sort((a, b) => a - b);
  }

  /** The record of something that moves. The same object each time: copy what must last. */
  #moving(id: number): FrameRecord | null {
    this.#refresh();
    const offset = this.#offsets.get(id);
    return offset === undefined || !this.#frame ? null : this.#record.read(this.#frame, offset);
  }

  /** An entity of the scene that was not removed. */
  #standing(id: number): Part | undefined {
    return this.source.removed.has(id) ? undefined : this.#parts.get(id);
  }

  /** Indexes a new frame or scene, once. */
  #refresh(): void {
    const [frame, scene] = [this.source.frame(), this.source.scene()];
    if (scene !== this.#scene) {
      this.#scene = scene;
      this.#parts = new Map(scene ? resolveParts(scene).map((part) => [part.id, part]) : []);
      this.#sceneEntities = new Map(scene?.entities.map((entity) => [entity.id, entity]));
      this.#prefabs = scene ? prefabNames(scene) : [];
    }
    if (frame === this.#frame) return;
    this.#frame = frame;
    this.#offsets.clear();
    for (let at = 0; at + FRAME_STRIDE <= frame.length; at += FRAME_STRIDE) this.#offsets.set(idAt(frame, at), at);
  }
}

const own = <T>(table: Record<string, T>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

const triple = (point: { x: number; y: number; z: number }): Triple => [point.x, point.y, point.z];

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
