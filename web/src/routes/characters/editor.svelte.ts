// State of the editor: the user's characters, the selected one and its changes.
import type { Character, CharacterLooks } from '../../generated/rest';
import { ApiError } from '../../lib/api';
import { dressed, type Outfit } from './wardrobe';
import { activateCharacter, createCharacter, deleteCharacter, listCharacters, saveCharacter } from '../../lib/social';

/** Looks shown until a character is loaded. */
const DEFAULT_LOOKS: Outfit = { hat: 'none', face: 'smile' };
const plain = (looks: Outfit): Outfit => ({ ...looks });

export class CharacterEditor {
  characters = $state.raw<Character[]>([]);
  limit = $state(0);
  error = $state.raw<Error | null>(null);
  loaded = $state(false);
  busy = $state(false);
  selected = $state.raw<Character | null>(null);
  name = $state('');
  looks = $state<Outfit>(DEFAULT_LOOKS);

  /** Whether colours were never chosen; each world then picks its own. */
  get undressed(): boolean {
    const looks = this.selected?.looks;
    return looks !== undefined && [looks.skin, looks.hair, looks.shirt, looks.trousers].some((color) => !color);
  }

  get changed(): boolean {
    const before = this.selected;
    return (
      before !== null &&
      (this.name !== before.name || JSON.stringify(order(this.looks)) !== JSON.stringify(order(before.looks)))
    );
  }

  async load(): Promise<void> {
    this.error = null;
    try {
      const { characters, limit } = await listCharacters();
      this.characters = characters;
      this.limit = limit;
      this.loaded = true;
      const again = characters.find((one) => one.character_id === this.selected?.character_id);
      this.select(again ?? characters.find((one) => one.active) ?? characters[0] ?? null);
    } catch (error) {
      this.error = error instanceof Error ? error : new Error(String(error));
    }
  }

  select(character: Character | null): void {
    this.selected = character;
    this.name = character?.name ?? '';
    this.looks = character ? dressed(character.looks, character.character_id) : plain(DEFAULT_LOOKS);
  }

  /** True when it was stored; a concurrent edit is shown instead of being overwritten. */
  save = () =>
    this.#work(async () => {
      if (!this.selected) return;
      try {
        this.#put(await saveCharacter(this.selected, this.name, plain(this.looks)));
      } catch (error) {
        if (error instanceof ApiError && error.code === 'version_conflict') await this.load();
        throw error;
      }
    });

  activate = () =>
    this.#work(async () => {
      if (!this.selected) return;
      const active = await activateCharacter(this.selected.character_id);
      this.characters = this.characters.map((one) => ({ ...one, active: one.character_id === active.character_id }));
      this.selected = { ...this.selected, active: true };
    });

  /** Creates a character with the current looks. */
  create = (name: string) =>
    this.#work(async () => {
      const made = await createCharacter(name, plain(this.looks));
      this.characters = [...this.characters, made];
      this.select(made);
    });

  remove = () =>
    this.#work(async () => {
      if (!this.selected) return;
      await deleteCharacter(this.selected.character_id);
      this.selected = null;
      await this.load();
    });

  #put(character: Character): void {
    this.characters = this.characters.map((one) => (one.character_id === character.character_id ? character : one));
    this.select(character);
  }

  async #work(work: () => Promise<void>): Promise<void> {
    this.busy = true;
    try {
      await work();
    } finally {
      this.busy = false;
    }
  }
}

/** A canonical text of looks, independent of property order. */
function order(looks: CharacterLooks): [string, unknown][] {
  const chosen = Object.entries(looks).filter(([, value]) => value !== undefined && value !== null);
  return chosen.sort(([a], [b]) => a.localeCompare(b));
}
