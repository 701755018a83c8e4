// Visual effects, sounds and script events for shots, hits and damage.
import type { Combat } from './combat.svelte';
import type { CoreEvent, PlayerInfo, WireValue } from '../core/events';
import type { Part } from '../core/parts';
import type { ScriptBridge } from '../scripts/bridge';
import type { SoundBoard } from '../sound';
import type { WorldView } from '../view/world-view';

/** The parts of a session used here. */
export interface Fight {
  readonly sound: SoundBoard;
  readonly view: WorldView | null;
  readonly scripts: Pick<ScriptBridge, 'happened'>;
  readonly players: readonly PlayerInfo[];
  readonly parts: ReadonlyMap<number, Part>;
}

export class FightEvents {
  constructor(
    private readonly fight: Fight,
    private readonly combat: Combat,
  ) {}

  /** The weapon of a character. */
  weaponOf(entity: number): number | undefined {
    const player = this.fight.players.find((known) => known.entityId === entity);
    if (player) return this.combat.armed.get(player.number);
    // The weapon of an NPC is an attribute.
    const weapon = this.fight.parts.get(entity)?.attributes.Weapon;
    return typeof weapon === 'string' ? this.combat.named(weapon) : undefined;
  }

  vitals(event: CoreEvent & { type: 'vitals' }): void {
    const { combat } = this;
    const { sound } = this.fight;
    const { health, alive } = combat;
    combat.vitals(event);
    if (event.health < health) sound.play('ouch');
    if (alive && !event.alive) sound.play('out');
  }

  shot({ weapon, own, shooter, position, velocity }: CoreEvent & { type: 'shot' }): void {
    const { combat } = this;
    const { scripts, sound, view } = this.fight;
    const info = combat.weapons.get(weapon);
    scripts.happened('shot', [info?.name ?? '', entityOrNil(shooter), { $v: position }, { $v: velocity }]);
    if (own) {
      combat.shots += 1;
      view?.held.kick();
    }
    if (info?.sound) sound.play(info.sound, own ? 1 : this.#loudness(position));
    if (info && info.look !== 'nothing') view?.muzzle(position, velocity, own, info);
  }

  impact({ weapon, own, target, point, normal }: CoreEvent & { type: 'impact' }): void {
    const { combat } = this;
    const { scripts, sound, view } = this.fight;
    const info = combat.weapons.get(weapon);
    scripts.happened('impact', [info?.name ?? '', own, entityOrNil(target), { $v: point }, { $v: normal }]);
    const somebody = Boolean(view?.characterPosition(target));
    if (info && info.look !== 'nothing') view?.impact(point, normal, somebody, info);
    sound.play('impact', this.#loudness(point));
    if (own && somebody) {
      combat.mark();
      sound.play('mark');
    }
  }

  /** Volume by distance: 1 at the own character. */
  #loudness([x, y, z]: [number, number, number]): number {
    const ears = this.fight.view?.ownPosition;
    return ears ? 1 / (1 + Math.hypot(x - ears.x, y - ears.y, z - ears.z) / 9) : 0.5;
  }
}

const entityOrNil = (id: number): WireValue => (id > 0 ? { $e: id } : null);
