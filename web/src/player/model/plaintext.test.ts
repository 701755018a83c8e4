// Display of user-generated text.
import { expect, test } from 'vitest';
import { plainText } from './plaintext';

test('text direction overrides are removed, letters of any script stay', () => {
  expect(plainText('Ada\u202Enimda\u202C')).toBe('Adanimda');
  expect(plainText('\u2067Ben\u2069')).toBe('Ben');
  expect(plainText('שלום 👋🏽 עולם')).toBe('שלום 👋🏽 עולם');
});
