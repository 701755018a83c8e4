// Labels of the options. The colours equal the defaults picked by worlds; they are duplicated
// here because the view's list would load three.js.
import type { CharacterLooks, FaceName, HatName } from '../../generated/rest';
import { hashText } from '../../lib/hash';

export const SHIRTS = ['#ff5d5d', '#3aa6ff', '#ffc53d', '#2fbf71', '#8b6cff', '#ff8f4a', '#1fb8b0', '#f27db7'] as const;
export const TROUSERS = ['#3f5a96', '#5a4790', '#3a7660', '#8a5238', '#41586e', '#97486a'] as const;
export const SKINS = ['#ffdcb8', '#f7c79d', '#e3ab80', '#c98d62', '#a76c48', '#865338'] as const;
export const HAIRS = ['#3d2b22', '#5c3a22', '#8a5630', '#d39a4a', '#efd07c', '#a8402f', '#55506e'] as const;

export const HATS_WORN: readonly { value: HatName; label: string }[] = [
  { value: 'none', label: 'No hat' },
  { value: 'cap', label: 'Cap' },
  { value: 'beanie', label: 'Beanie' },
  { value: 'top_hat', label: 'Top hat' },
  { value: 'crown', label: 'Crown' },
  { value: 'party', label: 'Party hat' },
  { value: 'straw', label: 'Straw hat' },
  { value: 'horns', label: 'Horns' },
];

export const FACES_WORN: readonly { value: FaceName; label: string }[] = [
  { value: 'smile', label: 'Smile' },
  { value: 'grin', label: 'Grin' },
  { value: 'wink', label: 'Wink' },
  { value: 'cool', label: 'Cool' },
  { value: 'surprised', label: 'Surprised' },
  { value: 'sleepy', label: 'Sleepy' },
  { value: 'fierce', label: 'Fierce' },
];

/** Looks whose hat and face are chosen. */
export type Outfit = CharacterLooks & Required<Pick<CharacterLooks, 'hat' | 'face'>>;

/** Looks with all colours set: worlds pick defaults for missing ones, but the editor needs concrete values. */
export function dressed(looks: CharacterLooks, characterId: string): Outfit {
  const hash = hashText(characterId);
  const pick = (list: readonly string[], shift: number): string | undefined => list[(hash >>> shift) % list.length];
  return {
    hat: looks.hat ?? 'none',
    face: looks.face ?? 'smile',
    skin: looks.skin ?? pick(SKINS, 13),
    hair: looks.hair ?? pick(HAIRS, 19),
    shirt: looks.shirt ?? pick(SHIRTS, 0),
    trousers: looks.trousers ?? pick(TROUSERS, 7),
    accent: looks.accent ?? pick(SHIRTS, 24),
  };
}
