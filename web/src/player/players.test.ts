// Merging presence updates into the player list, and the join and leave events.
import { expect, test } from 'vitest';
import type { PlayerInfo } from './events';
import { mergePlayers } from './players';

function player(number: number, changes: Partial<PlayerInfo> = {}): PlayerInfo {
  const looks: PlayerInfo['looks'] = {
    skin: null,
    hair: null,
    shirt: null,
    trousers: null,
    accent: null,
    hat: 'none',
    face: 'smile',
  };
  return {
    id: `user_${number}`,
    number,
    entityId: 1000 + number,
    name: `P${number}`,
    online: true,
    left: false,
    team: null,
    stats: [],
    looks,
    ...changes,
  };
}

test('a player who loses the connection stays in the list as away', () => {
  const away = player(1, { online: false });
  const merged = mergePlayers([player(1), player(2)], [away]);
  expect(merged).toEqual({ players: [away, player(2)], came: [], left: [] });
  expect(mergePlayers(merged.players, [player(1)])).toEqual({ players: [player(1), player(2)], came: [], left: [] });
});

test('only players who left are removed', () => {
  const gone = player(1, { online: false, left: true });
  expect(mergePlayers([player(1), player(2)], [gone])).toEqual({ players: [player(2)], came: [], left: [gone] });
  expect(mergePlayers([player(2)], [gone])).toEqual({ players: [player(2)], came: [], left: [] });
});

test('who comes is listed by number, also when they are away already', () => {
  const away = player(1, { online: false });
  expect(mergePlayers([player(2)], [player(3), away])).toEqual({
    players: [away, player(2), player(3)],
    came: [player(3), away],
    left: [],
  });
});

test('who comes again under another number is another player to scripts', () => {
  const again = player(5, { id: 'user_1' });
  expect(mergePlayers([player(1)], [again])).toEqual({ players: [again], came: [again], left: [] });
});
