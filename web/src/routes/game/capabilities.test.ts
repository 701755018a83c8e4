// Descriptions of a game's capabilities.
import { expect, test } from 'vitest';
import { sentence } from './capabilities';

test('capabilities are described in one sentence', () => {
  expect(sentence(['store'])).toBe('Saves your progress.');
  expect(sentence(['store', 'chat', 'http', 'lasers'])).toBe(
    'Saves your progress, talks to other websites, and uses lasers.',
  );
});

test('default capabilities are not described', () => {
  expect(sentence(['chat'])).toBe('');
  expect(sentence([])).toBe('');
});
