// The entity that the player can interact with. The server decides when interact is
// pressed (crates/world/src/characters/interact.rs); this applies the same rule to entities with a prompt.
import type { WireValue } from '../core/events';
import type { Found, Triple } from '../luau/host';

/** Replicated entities around the player. */
export interface Surroundings {
  inRadius(center: Triple, radius: number): number[];
  attribute(id: number, name: string): WireValue;
  entity(id: number, property: 'position'): Found;
  solidAlong(origin: Triple, direction: Triple, max: number): { id: number; distance: number } | null;
}

/** An entity and the text of its prompt. */
export interface Offer {
  id: number;
  text: string;
}

export const REACH_M = 4;
/** Cosine of the maximum angle for entities that are not looked at directly. */
const ASIDE_COS = 0.5;
const EYE_HEIGHT_M = 1.55;
const TEXT_CHARS_MAX = 40;

export function offerTo(
  world: Surroundings,
  feet: Triple,
  { yaw, pitch }: { yaw: number; pitch: number },
  own: number,
): Offer | null {
  const eyes: Triple = [feet[0], feet[1] + EYE_HEIGHT_M, feet[2]];
  const ahead: Triple = [-Math.sin(yaw) * Math.cos(pitch), Math.sin(pitch), -Math.cos(yaw) * Math.cos(pitch)];
  const offer = (id: number): Offer | null => {
    const text = world.attribute(id, 'Prompt');
    return typeof text === 'string' && text !== '' ? { id, text: text.slice(0, TEXT_CHARS_MAX) } : null;
  };
  const hit = world.solidAlong(eyes, ahead, REACH_M);
  const lookedAt = hit && offer(hit.id);
  if (lookedAt) return lookedAt;
  let best: Offer | null = null;
  let nearest = Infinity;
  for (const id of world.inRadius(eyes, REACH_M)) {
    const found = id === own ? null : offer(id);
    const place = found && world.entity(id, 'position');
    if (!found || !place || typeof place !== 'object' || !('$v' in place)) continue;
    const [x, y, z] = (place as { $v: Triple }).$v;
    const aside = [x - eyes[0], z - eyes[2]] as const;
    const level = Math.hypot(...aside);
    const inFront = aside[0] * -Math.sin(yaw) + aside[1] * -Math.cos(yaw) >= level * ASIDE_COS;
    const distance = Math.hypot(level, y - eyes[1]);
    if (inFront && distance <= REACH_M && distance < nearest) [best, nearest] = [found, distance];
  }
  return best;
}
