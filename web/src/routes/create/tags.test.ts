// Parsing of typed tags.
import { expect, test } from 'vitest';
import { badTag, splitTags } from './tags';

test('typed tags are normalized', () => {
  expect(splitTags('Obby,  co op ,obby,, 3D')).toEqual(['obby', 'co-op', '3d']);
  expect(splitTags('')).toEqual([]);
});

test('invalid tags are reported before they are sent', () => {
  expect(badTag(['obby', 'co-op'])).toBeNull();
  expect(badTag(['<b>'])).toContain('<b>');
  expect(badTag(['x'.repeat(25)])).toContain('24');
});
