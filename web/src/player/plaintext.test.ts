// What other people wrote, as it is shown.
import { expect, test } from 'vitest';
import { plainText } from './plaintext';

test('overrides of the text direction are taken out, letters of any script stay', () => {
  expect(plainText('Ada\u202Enimda\u202C')).toBe('Adanimda');
  expect(plainText('\u2067Ben\u2069')).toBe('Ben');
  expect(plainText('שלום 👋🏽 עולם')).toBe('שלום 👋🏽 עולם');
});
