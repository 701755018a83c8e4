// The seat saved by a tab: valid for a minute and for the same world, robust against invalid storage content.
import { expect, test } from 'vitest';
import { forgetPlace, keepPlace, keptPlace } from './saved-seat';

function memory(): Storage {
  const items = new Map<string, string>();
  return {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  } as unknown as Storage;
}

const place = { gameId: 'obby', worldId: 'world_1', roomCode: '7KQ2MX', resumeToken: 'abc' };

test('a seat is found for a minute', () => {
  const storage = memory();
  keepPlace(place, storage, 1000);
  expect(keptPlace('obby', { game_id: 'obby' }, storage, 61_000)).toMatchObject(place);
  expect(keptPlace('obby', { game_id: 'obby' }, storage, 61_001)).toBeNull();
  forgetPlace(storage);
  expect(keptPlace('obby', { game_id: 'obby' }, storage, 1000)).toBeNull();
});

test('it matches only the requested world', () => {
  const storage = memory();
  keepPlace(place, storage, 0);
  expect(keptPlace('arena', { game_id: 'arena' }, storage, 0)).toBeNull();
  expect(keptPlace('obby', { world_id: 'world_2' }, storage, 0)).toBeNull();
  expect(keptPlace('obby', { world_id: 'world_1' }, storage, 0)).not.toBeNull();
  expect(keptPlace('obby', { room_code: 'ABCDEF' }, storage, 0)).toBeNull();
  expect(keptPlace('obby', { room_code: '7kq2mx' }, storage, 0)).not.toBeNull();
});

test('invalid or missing storage content is no seat', () => {
  const storage = memory();
  for (const text of ['{', '5', '{"gameId":"obby","at":0}']) {
    storage.setItem('frolic.place', text);
    expect(keptPlace('obby', {}, storage, 0)).toBeNull();
  }
  keepPlace(place, null);
  expect(keptPlace('obby', {}, null)).toBeNull();
});
