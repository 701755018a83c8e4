// NPC data in frames: state and suspicion in one number (Mood in crates/protocol/src/npc.rs). Free of three.js.
import type { NpcState } from '../generated/NpcState';

export type { NpcState };

/** In the order of the numbers; 0 is no NPC. */
const STATES: NpcState[] = ['idle', 'suspicious', 'alert', 'chase', 'search', 'return'];
const LEVELS = 15;

/** The visible fields of the component in scene.json. */
export interface NpcData {
  sight_distance?: number;
  field_of_view?: number;
  vision_cone?: boolean;
  shirt?: string;
  trousers?: string;
  skin?: string;
  hair?: string;
}

/** As in crates/scene/src/npc.rs. */
export const NPC_DEFAULTS = { sight_distance: 14, field_of_view: 100 } as const;

/** State of an NPC; null for other entities. */
export function npcState(mood: number): NpcState | null {
  return STATES[(mood >> 4) - 1] ?? null;
}

/** From 0 to 1. */
export function npcSuspicion(mood: number): number {
  return (mood & 15) / LEVELS;
}

/** The mark above its head: none while it is calm. */
export function npcMark(mood: number): '' | '?' | '!' {
  switch (npcState(mood)) {
    case 'alert':
    case 'chase':
      return '!';
    case 'suspicious':
    case 'search':
      return '?';
    default:
      return '';
  }
}
