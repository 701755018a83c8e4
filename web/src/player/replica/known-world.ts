// The replicated world as client scripts query it. The client core knows it; this converts types.
import { VECTOR_POSITION, VECTOR_ROTATION, VECTOR_VELOCITY } from '../../generated/layout';
import type { ClientCore } from '../core/core';
import type { PlayerInfo, WireValue } from '../core/events';
import { idAt } from '../core/frame';
import type { EntityProperty, Found, PlayerProperty, Triple, WorldHost } from '../luau/host';
import { npcState, npcSuspicion } from '../core/npc';

/** The parts of a running session that are queried. */
export interface KnownSource {
  core(): ClientCore | undefined;
  readonly players: readonly PlayerInfo[];
  playerNumber(): number;
}

/** Scripts query the terrain with rays of its own. */
const TERRAIN = 0;

export class KnownWorld implements WorldHost {
  constructor(private readonly source: KnownSource) {}

  exists(id: number): boolean {
    return this.source.core()?.entity_exists(id) ?? false;
  }

  entity(id: number, property: EntityProperty): Found {
    const core = this.source.core();
    if (!core) return undefined;
    switch (property) {
      case 'position':
        return vector(core.entity_vector(id, VECTOR_POSITION));
      case 'velocity':
        return vector(core.entity_vector(id, VECTOR_VELOCITY));
      case 'rotation':
        return vector(core.entity_vector(id, VECTOR_ROTATION));
      case 'name':
        return core.entity_name(id);
      case 'color':
        return core.entity_color(id) ?? (core.entity_exists(id) ? null : undefined);
      case 'tags':
        return core.entity_exists(id) ? core.entity_tags(id) : undefined;
      case 'pattern':
        return core.entity_pattern(id);
    }
  }

  attribute(id: number, name: string): WireValue {
    const json = this.source.core()?.entity_attribute(id, name);
    return json === undefined ? null : (JSON.parse(json) as WireValue);
  }

  find(word: string): number[] {
    return [...(this.source.core()?.find_entities(word) ?? [])];
  }

  inRadius([x, y, z]: Triple, radius: number): number[] {
    return [...(this.source.core()?.entities_in_radius(x, y, z, radius) ?? [])];
  }

  raycast(origin: Triple, direction: Triple, max: number, tag: string, ignore: number[]) {
    const ray = Float32Array.from([...origin, ...direction]);
    const hit = this.source.core()?.raycast(ray, max, tag, Uint32Array.from([TERRAIN, ...ignore]), true);
    const [, distance = 0, x = 0, y = 0, z = 0] = hit ?? [];
    return hit?.length ? { id: idAt(hit, 0), distance, normal: [x, y, z] as Triple } : null;
  }

  players(): number[] {
    return this.source.players.map((player) => player.number);
  }

  playerOf(entity: number): number {
    return this.source.core()?.player_of(entity) ?? 0;
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
    return [...(this.source.core()?.npcs() ?? [])];
  }

  npc(id: number): { state: string; suspicion: number } | null {
    const mood = this.source.core()?.entity_mood(id) ?? 0;
    const state = npcState(mood);
    return state && { state, suspicion: npcSuspicion(mood) };
  }

  /** Players who left not long ago too: handlers may still read their names. */
  #player(number: number): PlayerInfo | undefined {
    const present = this.source.players.find((player) => player.number === number);
    if (present) return present;
    const json = this.source.core()?.player(number);
    return json === undefined ? undefined : (JSON.parse(json) as PlayerInfo);
  }
}

const vector = (numbers: Float32Array): Found => (numbers.length === 3 ? { $v: [...numbers] } : undefined);
