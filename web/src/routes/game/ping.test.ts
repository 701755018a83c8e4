// Ping is the minimum of several round trips.
import { afterEach, expect, test, vi } from 'vitest';
import { measurePing } from './ping';

afterEach(() => vi.unstubAllGlobals());

test('the minimum round trip counts, and no response gives null', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response()));
  const times = [0, 90, 100, 120, 200, 240];
  expect(await measurePing(undefined, () => times.shift() ?? 0)).toBe(20);
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('down')));
  expect(await measurePing()).toBeNull();
});
