// URLs of resized images.
import { expect, test } from 'vitest';
import { pictureSet, smaller } from './pictures';

test('a width is added to existing query parameters', () => {
  expect(smaller('/cdn/ab', 320)).toBe('/cdn/ab?w=320');
  expect(smaller('/cdn/ab?grant=1.x', 640)).toBe('/cdn/ab?grant=1.x&w=640');
});

test('an image that is not on the server is used unchanged', () => {
  expect(pictureSet('blob:http://x/1')).toBe(undefined);
  expect(smaller('data:image/png;base64,x', 320)).toBe('data:image/png;base64,x');
  expect(pictureSet('/p?v=1')).toBe('/p?v=1&w=320 320w, /p?v=1&w=640 640w, /p?v=1&w=1280 1280w');
});
