// The chat log: bounded, and its lines fit what a server takes.
import { expect, test } from 'vitest';
import { ChatLog, fitLine } from './chat.svelte';

test('the log keeps the newest lines and gives each its own number', () => {
  const log = new ChatLog();
  for (let i = 0; i < 130; i++) log.add('Ada', `line ${i}`, i);
  expect(log.lines.length).toBe(100);
  expect(log.lines[0]?.text).toBe('line 30');
  expect(new Set(log.lines.map((line) => line.id)).size).toBe(100);
});

test('a long line is cut to what the server takes, between letters', () => {
  expect(fitLine('  hello ')).toBe('hello');
  const cut = fitLine('ä'.repeat(400));
  expect(cut).toBe('ä'.repeat(150));
});
