// What stands above a head.
import { expect, test } from 'vitest';
import { tagText } from './nametag';

test('a tag says who is away, apart from the name; long names are cut and direction overrides are taken out', () => {
  expect(tagText('NimbleHeron', true)).toBe('NimbleHeron · away');
  expect(tagText('Ada\u202E', false)).toBe('Ada');
  expect(tagText('a'.repeat(40), false).length).toBe(24);
});
