// Chosen looks are used, defaults are the same for every viewer, and hats sit on heads.
import { expect, test } from 'vitest';
import { hatGeometry, HATS } from './hats';
import { avatarLook, npcLook, sameLooks } from './look';

const guard = {
  sightDistance: 14,
  fieldOfView: 100,
  visionCone: false,
  shirt: null,
  trousers: null,
  skin: null,
  hair: '#445566',
};

test('chosen parts are used and the rest is derived from the id', () => {
  const plain = avatarLook(7);
  expect(plain).toMatchObject({ hat: 'none', face: 'smile' });
  expect(avatarLook(7)).toEqual(plain);
  const dressed = avatarLook(7, { shirt: '#112233', hat: 'crown', face: 'wink', skin: null });
  expect(`#${dressed.shirt.getHexString()}`).toBe('#112233');
  expect(dressed).toMatchObject({ hat: 'crown', face: 'wink', skin: plain.skin });
  expect(`#${dressed.accent.getHexString()}`).toBe('#ffc53d');
  expect(`#${npcLook(7, guard).hair.getHexString()}`).toBe('#445566');
});

test('looks are compared by visible differences', () => {
  expect(sameLooks(undefined, {})).toBe(true);
  expect(sameLooks({ hat: 'cap' }, { hat: 'cap' })).toBe(true);
  expect(sameLooks({ hat: 'cap' }, { hat: 'crown' })).toBe(false);
});

test.each(HATS)('a %s is a hat: on the head, in colour, not larger than a player', (hat) => {
  const geometry = hatGeometry(hat, true);
  geometry.computeBoundingBox();
  const box = geometry.boundingBox!;
  expect(box.min.y).toBeGreaterThan(-0.3);
  expect(box.max.y).toBeGreaterThan(0.1);
  expect(box.max.y).toBeLessThan(0.8);
  expect(Math.max(box.max.x, -box.min.x)).toBeLessThan(0.7);
  expect(geometry.attributes.color?.count).toBe(geometry.attributes.position?.count);
});
