// Weapons of all players and the health of the own character.
import { SvelteMap } from 'svelte/reactivity';
import type { CoreEvent } from '../core/events';

export type WeaponInfo = Extract<CoreEvent, { type: 'weapon' }>;

/** Duration of the hit marker. */
const HIT_MARK_MS = 180;

export class Combat {
  /** The weapon of the own character. */
  weapon = $state.raw<WeaponInfo | null>(null);
  health = $state(100);
  maxHealth = $state(100);
  alive = $state(true);
  /** An own shot just hit a character. */
  marked = $state(false);
  /** Number of times the own character was hurt; each change triggers the effect. */
  hurt = $state(0);
  readonly weapons = new SvelteMap<number, WeaponInfo>();
  /** Weapons by player number. */
  readonly armed = new SvelteMap<number, number>();
  /** Number of own shots and hits, for tests. */
  shots = 0;
  hits = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Health is shown only in games where it changes. */
  get shown(): boolean {
    return this.weapon !== null || this.health < this.maxHealth || !this.alive;
  }

  define(weapon: WeaponInfo, own: number): void {
    this.weapons.set(weapon.index, weapon);
    this.#holdOwn(own);
  }

  arm(player: number, weapon: number | null, own: number): void {
    if (weapon === null) this.armed.delete(player);
    else this.armed.set(player, weapon);
    this.#holdOwn(own);
  }

  /** The number of the weapon with this name. */
  named(name: string): number | undefined {
    for (const [index, weapon] of this.weapons) if (weapon.name === name) return index;
    return undefined;
  }

  vitals(event: Extract<CoreEvent, { type: 'vitals' }>): void {
    if (event.health < this.health) this.hurt += 1;
    this.health = event.health;
    this.maxHealth = event.maxHealth;
    this.alive = event.alive;
  }

  mark(): void {
    this.hits += 1;
    this.marked = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.marked = false), HIT_MARK_MS);
  }

  /** Resets the state for a new connection. */
  clear(): void {
    this.weapons.clear();
    this.armed.clear();
    this.weapon = null;
    this.health = this.maxHealth = 100;
    this.alive = true;
  }

  #holdOwn(own: number): void {
    const index = this.armed.get(own);
    this.weapon = (index !== undefined && this.weapons.get(index)) || null;
  }
}
