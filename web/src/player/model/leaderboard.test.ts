// Order and columns of the leaderboard.
import { expect, test } from 'vitest';
import type { PlayerInfo } from '../core/events';
import { leaderboard, ranked } from './leaderboard';

const ROOM = { rows: 8, columns: 3 };

function player(
  name: string,
  entityId: number,
  figures: Record<string, number | string> = {},
  online = true,
): PlayerInfo {
  const stats = Object.entries(figures).map(([stat, value]) => ({
    name: stat,
    text: String(value),
    number: typeof value === 'number' ? value : null,
  }));
  return {
    id: name,
    number: entityId,
    entityId,
    name,
    online,
    left: false,
    team: null,
    stats,
    looks: {},
  } as unknown as PlayerInfo;
}

test('best first by the first column, then by the next, then by name; disconnected players last', () => {
  const players = [
    player('Cleo', 1, { KOs: 1, Outs: 0 }),
    player('Ada', 2, { KOs: 3, Outs: 1 }),
    player('Ben', 3, { KOs: 3, Outs: 4 }),
    player('Eve', 4, { KOs: 9 }, false),
    player('Bob', 5),
    player('Abe', 6),
  ];
  expect(ranked(players).map((one) => one.name)).toEqual(['Ben', 'Ada', 'Cleo', 'Abe', 'Bob', 'Eve']);
});

test('columns are the stats of all players in the order the game set them, with matching cells', () => {
  const board = leaderboard(
    [player('Ada', 1, { Stage: 2, Falls: 5 }), player('Ben', 2, { Falls: 1, Wins: 1, More: 7 })],
    1,
    ROOM,
  );
  expect(board?.columns).toEqual(['Stage', 'Falls', 'Wins']);
  expect(board?.rows.map((row) => [row.player.name, row.own, ...row.cells])).toEqual([
    ['Ada', true, '2', '5', ''],
    ['Ben', false, '', '1', '1'],
  ]);
});

test('the list is cut to the available rows, and the own row stays', () => {
  const players = Array.from({ length: 50 }, (_, i) => player(`P${i}`, i + 1, { Coins: 100 - i }));
  const board = leaderboard(players, 40, { rows: 5, columns: 2 });
  expect(board?.rows.map((row) => row.player.entityId)).toEqual([1, 2, 3, 4, 40]);
  expect([board?.rows.at(-1)?.own, board?.more]).toEqual([true, 45]);
});

test('there is no board for a single player without stats; otherwise there is', () => {
  expect(leaderboard([], 1, ROOM)).toBeNull();
  expect(leaderboard([player('Ada', 1)], 1, ROOM)).toBeNull();
  expect(leaderboard([player('Ada', 1, { Coins: 0 })], 1, ROOM)?.rows.length).toBe(1);
  expect(leaderboard([player('Ada', 1), player('Ben', 2)], 1, ROOM)?.rows.length).toBe(2);
});
