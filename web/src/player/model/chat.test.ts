// The chat log is bounded, and messages fit the server's limit.
import { expect, test } from 'vitest';
import { ChatLog, fitLine } from './chat.svelte';

test('the log holds the newest messages, each with a unique number', () => {
  const log = new ChatLog();
  for (let i = 0; i < 130; i++) log.add('Ada', `line ${i}`, i);
  expect(log.lines.length).toBe(100);
  expect(log.lines[0]?.text).toBe('line 30');
  expect(new Set(log.lines.map((line) => line.id)).size).toBe(100);
});

test('a long message is cut to the limit at a character boundary', () => {
  expect(fitLine('  hello ')).toBe('hello');
  const cut = fitLine('ä'.repeat(400));
  expect(cut).toBe('ä'.repeat(150));
});
