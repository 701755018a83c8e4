// The colours of an avatar, from its owner's id: everybody sees the same person the same way.
import { Color } from 'three';
import { hashText } from '../../lib/hash';

export interface AvatarLook {
  shirt: Color;
  trousers: Color;
  skin: Color;
  hair: Color;
}

const SHIRTS = ['#ff5d5d', '#3aa6ff', '#ffc53d', '#2fbf71', '#8b6cff', '#ff8f4a', '#1fb8b0', '#f27db7'];
const TROUSERS = ['#2c3e66', '#3b2f5c', '#264d3f', '#5a3326', '#22303d', '#6b2f45'];
const SKINS = ['#ffd9b0', '#f3bf93', '#dca073', '#b97a4f', '#8d5636', '#6a3f28'];
const HAIRS = ['#2a1d16', '#4a2c18', '#7a4a22', '#c98b3c', '#e9c46a', '#8f2f24', '#3d3a4f'];

export function avatarLook(playerId: number): AvatarLook {
  const hash = hashText(`player ${playerId}`);
  const pick = (list: string[], shift: number) => new Color(list[(hash >>> shift) % list.length]);
  return { shirt: pick(SHIRTS, 0), trousers: pick(TROUSERS, 7), skin: pick(SKINS, 13), hair: pick(HAIRS, 19) };
}
