// What scripts learn of the world through the page: unknown entities and players, missing values, and rays.
import { expect, test } from 'vitest';
import type { ClientCore } from '../core/core';
import type { PlayerInfo } from '../core/events';
import { setId } from '../core/frame';
import { KnownWorld } from './known-world';

const ada: PlayerInfo = {
  id: 'user_1',
  number: 7,
  entityId: 1000,
  name: 'Ada',
  online: true,
  left: false,
  team: 'Red',
  looks: { skin: null, hair: null, shirt: null, trousers: null, accent: null, hat: 'none', face: 'smile' },
  stats: [
    { name: 'Coins', text: '3', number: 3 },
    { name: 'Rank', text: 'Gold', number: null },
  ],
};

/** A core that knows entity 1000, and 20,000,001 along every ray; all else is unknown. */
function known(players: PlayerInfo[] = [ada]) {
  const rays: unknown[] = [];
  const core = {
    entity_exists: (id: number) => id === 1000,
    entity_vector: (id: number) => Float32Array.from(id === 1000 ? [1, 2, 3] : []),
    entity_name: (id: number) => (id === 1000 ? 'Ada' : undefined),
    entity_color: () => undefined,
    entity_tags: () => ['hero'],
    entity_attribute: (_: number, name: string) => (name === 'Home' ? '{"$v":[1,2,3]}' : undefined),
    entity_mood: (id: number) => (id === 1000 ? 0x2f : 0),
    find_entities: () => Uint32Array.from([1000]),
    player: (number: number) => (number === 8 ? JSON.stringify({ ...ada, number: 8, name: 'Ben' }) : undefined),
    raycast: (...ray: unknown[]) => {
      rays.push(ray);
      const hit = Float32Array.from([0, 4.5, 0, 1, 0]);
      setId(hit, 0, 20_000_001);
      return hit;
    },
  } as unknown as ClientCore;
  return { world: new KnownWorld({ core: () => core, players, playerNumber: () => 7 }), rays };
}

test('an unknown entity has no properties, and a known one may lack a value', () => {
  const { world } = known();
  expect(world.entity(1000, 'position')).toEqual({ $v: [1, 2, 3] });
  expect(world.entity(1000, 'name')).toBe('Ada');
  expect([world.entity(1000, 'color'), world.entity(1000, 'tags')]).toEqual([null, ['hero']]);
  for (const property of ['position', 'name', 'color', 'tags'] as const)
    expect(world.entity(99, property), property).toBe(undefined);
  expect([world.attribute(1000, 'Home'), world.attribute(1000, 'Other')]).toEqual([{ $v: [1, 2, 3] }, null]);
  expect([world.npc(1000), world.npc(99)]).toEqual([{ state: 'suspicious', suspicion: 1 }, null]);
  expect(world.find('Ada')).toEqual([1000]);
});

test('players, their stats, and those who just left', () => {
  const { world } = known();
  expect(world.players()).toEqual([7]);
  expect([world.player(7, 'team'), world.stat(7, 'Coins'), world.stat(7, 'Rank'), world.stat(7, 'None')]).toEqual([
    'Red',
    3,
    'Gold',
    null,
  ]);
  expect(world.player(7, 'character')).toEqual({ $e: 1000 });
  expect([world.player(8, 'name'), world.player(9, 'name')]).toEqual(['Ben', undefined]);
});

test('rays of scripts pass through terrain and hit characters', () => {
  const { world, rays } = known();
  const hit = world.raycast([0, 0, 0], [1, 0, 0], 10, 'wall', [5]);
  expect(hit).toEqual({ id: 20_000_001, distance: 4.5, normal: [0, 1, 0] });
  const ray = Float32Array.from([0, 0, 0, 1, 0, 0]);
  expect(rays).toEqual([[ray, 10, 'wall', Uint32Array.from([0, 5]), true]]);
});
