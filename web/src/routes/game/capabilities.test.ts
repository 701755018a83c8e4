// Words for what a game's scripts may use.
import { expect, test } from 'vitest';
import { sentence } from './capabilities';

test('what a game may do is one sentence', () => {
  expect(sentence(['store'])).toBe('Saves your progress.');
  expect(sentence(['store', 'chat', 'http', 'lasers'])).toBe(
    'Saves your progress, talks to other websites, and uses lasers.',
  );
});

test('what every game does is not worth a sentence', () => {
  expect(sentence(['chat'])).toBe('');
  expect(sentence([])).toBe('');
});
