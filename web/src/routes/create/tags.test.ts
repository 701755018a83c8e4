// Tags as they are typed.
import { expect, test } from 'vitest';
import { badTag, splitTags } from './tags';

test('typed tags become words of the store', () => {
  expect(splitTags('Obby,  co op ,obby,, 3D')).toEqual(['obby', 'co-op', '3d']);
  expect(splitTags('')).toEqual([]);
});

test('what the store would refuse is said before it is sent', () => {
  expect(badTag(['obby', 'co-op'])).toBeNull();
  expect(badTag(['<b>'])).toContain('<b>');
  expect(badTag(['x'.repeat(25)])).toContain('24');
});
