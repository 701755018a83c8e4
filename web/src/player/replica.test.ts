// What scripts learn of the world: the scene, what moves, who is here, and what is gone.
import { Quaternion, Vector3 } from 'three';
import { expect, test } from 'vitest';
import type { PlayerInfo } from './events';
import { FRAME_STRIDE, setId } from './frame';
import { degrees, type KnownSource, KnownWorld } from './replica';
import { PartMap } from './parts';
import { makePart } from './parts.fixture';

const coin = (id: number) => makePart(id, { name: 'Coin', tags: ['coin'], color: '#ffc53d' });
const parts = [
  makePart(1, { name: 'Ground', attributes: { Kind: 'grass' } }),
  makePart(2, { name: 'Door', position: [3, 0, 0], tags: ['door'], color: '#ff0080', attributes: { Open: true } }),
  coin(2000),
];
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

type Row = [id: number, kind: number, definition: number, position: number[], velocity?: number[]];

function frameOf(...rows: Row[]): Float32Array {
  const frame = new Float32Array(FRAME_STRIDE * rows.length);
  rows.forEach(([id, kind, definition, position, velocity = [0, 0, 0]], i) => {
    const numbers = [0, kind, definition, 0, ...position, 0, 0, 0, 1, ...velocity, 0, 0];
    expect(numbers.length).toBe(FRAME_STRIDE);
    frame.set(numbers, i * FRAME_STRIDE);
    setId(frame, i * FRAME_STRIDE, id);
  });
  return frame;
}

function known() {
  const state = { frame: frameOf([1000, 1, 0, [1, 2, 3], [0, 0, -5]], [2000, 2, 2, [5, 0, 0]]) };
  const source = {
    parts: new PartMap(parts.map((part) => [part.id, part])),
    gonePlayers: new Map<number, PlayerInfo>(),
    players: [ada],
    frame: () => state.frame,
    attributes: (id: number) => (id === 1000 ? { Team: 'red' } : undefined),
    playerNumber: () => 7,
    raycast: () => null,
  } satisfies KnownSource;
  return { world: new KnownWorld(source), source, state };
}

test('standing, moving, spawned: names, places, tags, colours', () => {
  const { world } = known();
  expect(world.entity(1, 'position')).toEqual({ $v: [0, 0, 0] });
  expect(world.entity(1000, 'position')).toEqual({ $v: [1, 2, 3] });
  expect(world.entity(1000, 'velocity')).toEqual({ $v: [0, 0, -5] });
  expect(['name', 'tags', 'color'].map((key) => world.entity(2000, key as 'name'))).toEqual([
    'Coin',
    ['coin'],
    '#ffc53d',
  ]);
  expect(world.entity(1000, 'name')).toBe('Ada');
  expect(world.entity(2, 'color')).toBe('#ff0080');
  expect([world.attribute(2, 'Open'), world.attribute(1, 'Kind'), world.attribute(1, '__proto__')]).toEqual([
    true,
    'grass',
    null,
  ]);
  expect(world.attribute(1000, 'Team')).toBe('red');
  expect(world.entity(99, 'name')).toBe(undefined);
});

test('found by name, tag and distance; what is gone is not found', () => {
  const { world, source, state } = known();
  expect([world.find('Door'), world.find('coin'), world.find('Ada'), world.find('x')]).toEqual([
    [2],
    [2000],
    [1000],
    [],
  ]);
  expect(world.inRadius([5, 0, 0], 3)).toEqual([2, 2000]);
  source.parts.apply({ changed: [], removed: [2, 2000] });
  state.frame = new Float32Array(0);
  expect([world.exists(2), world.exists(2000), world.find('Door'), world.find('coin')]).toEqual([false, false, [], []]);
});

test('two entities beyond 2^24 are two', () => {
  const { world, source, state } = known();
  source.parts.apply({ changed: [coin(20_000_000), coin(20_000_001)], removed: [2000] });
  state.frame = frameOf([20_000_000, 2, 2, [1, 0, 0]], [20_000_001, 2, 2, [2, 0, 0]]);
  expect(world.find('coin')).toEqual([20_000_000, 20_000_001]);
  expect(world.entity(20_000_000, 'position')).toEqual({ $v: [1, 0, 0] });
  expect(world.entity(20_000_001, 'position')).toEqual({ $v: [2, 0, 0] });
});

test('players, their figures, and those who just left', () => {
  const { world, source } = known();
  expect([world.players(), world.playerOf(1000), world.playerOf(1)]).toEqual([[7], 7, 0]);
  expect([world.player(7, 'team'), world.stat(7, 'Coins'), world.stat(7, 'Rank'), world.stat(7, 'None')]).toEqual([
    'Red',
    3,
    'Gold',
    null,
  ]);
  expect(world.player(7, 'character')).toEqual({ $e: 1000 });
  source.players.length = 0;
  expect(world.player(7, 'name')).toBe(undefined);
  source.gonePlayers.set(7, ada);
  expect(world.player(7, 'name')).toBe('Ada');
});

test('degrees as the server gives them', () => {
  const turned = new Quaternion().setFromAxisAngle(new Vector3(0, 1, 0), Math.PI / 2);
  expect(degrees(turned).map(Math.round)).toEqual([0, 90, 0]);
});
