// Resolves files of the game by name only.
import { expect, test } from 'vitest';
import { GameAssets } from './assets';

const file = (path: string) => ({ path, url: `/cdn/${path.length}`, media_type: 'image/png', size_bytes: 1 });

test('a name may omit folders; unknown names are not found', async () => {
  let asked = 0;
  const assets = new GameAssets('a game', (id, world) => {
    asked += 1;
    expect([id, world]).toEqual(['a game', undefined]);
    return Promise.resolve({ revision: 'r', files: [file('assets/heart.png'), file('assets/sounds/hit.ogg')] });
  });
  expect(await assets.image('heart.png')).toBe('/cdn/16');
  expect(await assets.image('assets/heart.png')).toBe('/cdn/16');
  expect(await assets.sound('hit.ogg')).toBe('/cdn/21');
  expect(await assets.image('https://example.com/x.png')).toBe(null);
  expect(await assets.image('../secret')).toBe(null);
  expect(asked).toBe(1);
});

test('a missing file is reported once', async () => {
  const assets = new GameAssets('g', () => Promise.resolve({ revision: 'r', files: [file('assets/a.png')] }));
  const reported: string[] = [];
  assets.onMissing = (text) => reported.push(text);
  await assets.image('a.png');
  await assets.image('assets/none.png');
  await assets.image('assets/none.png');
  await assets.sound('none.ogg');
  expect(reported).toEqual([
    'there is no file "assets/none.png" in this game',
    'there is no file "none.ogg" in this game, and none in assets/ or assets/sounds/',
  ]);
  // A saved asset may change the list.
  assets.reset();
  await assets.image('assets/none.png');
  expect(reported.length).toBe(3);
});

test('a list that failed to load is requested again', async () => {
  let asked = 0;
  const assets = new GameAssets('g', () =>
    asked++ === 0
      ? Promise.reject(new Error('offline'))
      : Promise.resolve({ revision: 'r', files: [file('assets/a.png')] }),
  );
  expect(await assets.image('a.png')).toBe(null);
  expect(await assets.image('a.png')).toBe('/cdn/12');
});

test('files are resolved for the current world', async () => {
  let world: string | null = null;
  const asked: string[] = [];
  const load = (id: string, world = 'none') => {
    asked.push(`${id} in ${world}`);
    return Promise.resolve({ revision: 'r', files: [file('assets/a.png')] });
  };
  const assets = new GameAssets('g', load, () => world);
  await assets.image('a.png');
  world = 'world_1';
  await assets.image('a.png');
  await assets.image('a.png');
  expect(asked).toEqual(['g in none', 'g in world_1']);
});
