// The players of a replica: changes are merged by id.
import { expect, test } from 'vitest';
import type { PlayerInfo } from '../core/events';
import { WorldReplica } from './world-replica.svelte';

const player = (number: number, more: Partial<PlayerInfo> = {}) =>
  ({ id: `user_${number}`, number, name: `P${number}`, online: true, left: false, ...more }) as PlayerInfo;

test('changed players replace those with their id, and those who left disappear', () => {
  const replica = new WorldReplica({ core: () => undefined, view: null });
  replica.takePlayers([player(3), player(1)]);
  replica.takePlayers([player(2), player(3, { online: false })]);
  expect(replica.players.map(({ number, online }) => [number, online])).toEqual([
    [1, true],
    [2, true],
    [3, false],
  ]);
  replica.takePlayers([player(1, { left: true }), player(5, { id: 'user_2' })]);
  expect(replica.players.map(({ number }) => number)).toEqual([3, 5]);
});
