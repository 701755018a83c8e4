// The colours of an avatar, from its owner's id: everybody sees the same person the same way.
import { Color } from 'three';
import { hashText } from '../../lib/hash';
import type { NpcData } from '../npc';

export interface AvatarLook {
  shirt: Color;
  trousers: Color;
  skin: Color;
  hair: Color;
}

const SHIRTS = ['#ff5d5d', '#3aa6ff', '#ffc53d', '#2fbf71', '#8b6cff', '#ff8f4a', '#1fb8b0', '#f27db7'];
const TROUSERS = ['#3f5a96', '#5a4790', '#3a7660', '#8a5238', '#41586e', '#97486a'];
const SKINS = ['#ffdcb8', '#f7c79d', '#e3ab80', '#c98d62', '#a76c48', '#865338'];
const HAIRS = ['#3d2b22', '#5c3a22', '#8a5630', '#d39a4a', '#efd07c', '#a8402f', '#55506e'];

export function avatarLook(playerId: number): AvatarLook {
  const hash = hashText(`player ${playerId}`);
  const pick = (list: string[], shift: number) => new Color(list[(hash >>> shift) % list.length]);
  return { shirt: pick(SHIRTS, 0), trousers: pick(TROUSERS, 7), skin: pick(SKINS, 13), hair: pick(HAIRS, 19) };
}

/** An NPC's own colours, and for what its creator left open those that its id gives it. */
export function npcLook(id: number, { shirt, trousers, skin, hair }: NpcData): AvatarLook {
  const given = avatarLook(id);
  const own = (color: string | undefined, otherwise: Color) => (color ? new Color(color) : otherwise);
  return {
    shirt: own(shirt, given.shirt),
    trousers: own(trousers, given.trousers),
    skin: own(skin, given.skin),
    hair: own(hair, given.hair),
  };
}
