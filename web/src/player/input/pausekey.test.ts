// One press of Esc may be reported once or twice.
import { expect, test } from 'vitest';
import { PauseKey } from './pausekey';

test('a press that released the pointer lock does not close the menu again, however slow the frames are', () => {
  const key = new PauseKey();
  expect(key.escape(100)).toBe(true);
  // Pressed at 1000; the page was busy until 2300, and handles the key a second after that.
  key.lockLost(2300);
  expect(key.escape(1000)).toBe(false);
  expect(key.escape(2310)).toBe(false);
  // The next press closes it.
  expect(key.escape(2900)).toBe(true);
});
