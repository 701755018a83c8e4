// The looks of an avatar: what its owner chose, with defaults derived from its id, so that every viewer sees the same
// avatar.
import { Color } from 'three';
import type { AvatarLooks } from '../../generated/AvatarLooks';
import type { Face } from '../../generated/Face';
import type { Hat } from '../../generated/Hat';
import { hashText } from '../../lib/hash';
import type { PartNpc } from '../core/parts';

export interface AvatarLook {
  shirt: Color;
  trousers: Color;
  skin: Color;
  hair: Color;
  accent: Color;
  hat: Hat;
  face: Face;
}

export const SHIRTS = ['#ff5d5d', '#3aa6ff', '#ffc53d', '#2fbf71', '#8b6cff', '#ff8f4a', '#1fb8b0', '#f27db7'];
export const TROUSERS = ['#3f5a96', '#5a4790', '#3a7660', '#8a5238', '#41586e', '#97486a'];
export const SKINS = ['#ffdcb8', '#f7c79d', '#e3ab80', '#c98d62', '#a76c48', '#865338'];
export const HAIRS = ['#3d2b22', '#5c3a22', '#8a5630', '#d39a4a', '#efd07c', '#a8402f', '#55506e'];

/** Default hat colours. */
const HAT_COLORS: Partial<Record<Hat, string>> = {
  crown: '#ffc53d',
  straw: '#e8c27a',
  top_hat: '#2b2840',
  horns: '#f3ead9',
};

/** Missing or invalid parts of `chosen` use the defaults. */
export function avatarLook(id: number, chosen: Partial<AvatarLooks> = {}): AvatarLook {
  const hash = hashText(`player ${id}`);
  const pick = (list: string[], shift: number) => list[(hash >>> shift) % list.length] ?? '#888888';
  const { hat = 'none', face = 'smile' } = chosen;
  return {
    shirt: color(chosen.shirt, pick(SHIRTS, 0)),
    trousers: color(chosen.trousers, pick(TROUSERS, 7)),
    skin: color(chosen.skin, pick(SKINS, 13)),
    hair: color(chosen.hair, pick(HAIRS, 19)),
    accent: color(chosen.accent, HAT_COLORS[hat] ?? pick(SHIRTS, 24)),
    hat,
    face,
  };
}

/** An NPC's colours, with defaults derived from its id. */
export function npcLook(id: number, { shirt, trousers, skin, hair }: PartNpc): AvatarLook {
  return avatarLook(id, { shirt, trousers, skin, hair });
}

/** Whether two looks are visually equal. */
export function sameLooks(a: Partial<AvatarLooks> | undefined, b: Partial<AvatarLooks> | undefined): boolean {
  return JSON.stringify(a ?? {}) === JSON.stringify(b ?? {});
}

const color = (chosen: string | null | undefined, otherwise: string) => new Color(chosen || otherwise);
