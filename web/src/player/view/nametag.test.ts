// The text of name tags.
import { expect, test } from 'vitest';
import { tagText } from './nametag';

test('a tag marks disconnected players; long names are cut and direction overrides removed', () => {
  expect(tagText('NimbleHeron', true)).toBe('NimbleHeron · away');
  expect(tagText('Ada\u202E', false)).toBe('Ada');
  expect(tagText('a'.repeat(40), false).length).toBe(24);
});
