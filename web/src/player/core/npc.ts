// NPC data in frames: state and suspicion in one number (Mood in crates/protocol/src/npc.rs). Free of three.js.
import type { NpcState } from '../../generated/NpcState';

export type { NpcState };

/** In the order of the numbers; 0 is no NPC. */
const STATES: NpcState[] = ['idle', 'suspicious', 'alert', 'chase', 'search', 'return'];
const LEVELS = 15;

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
