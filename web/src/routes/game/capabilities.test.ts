// Words for what a game's scripts may use.
import { expect, test } from 'vitest';
import { sentence } from './capabilities';

test('what a game may do is one sentence', () => {
  expect(sentence(['store'])).toBe('keeps your progress');
  expect(sentence(['store', 'chat', 'lasers'])).toBe('keeps your progress, writes to the chat, and uses lasers');
});
