// A page that is too old for its server reloads once, not in a loop.
import { expect, test, vi } from 'vitest';
import { reloadOnce } from './outdated';

function storage(): Storage {
  const stored = new Map<string, string>();
  return {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
  } as unknown as Storage;
}

test('it reloads, and again only after a long time', () => {
  const [tab, reload] = [storage(), vi.fn()];
  expect(reloadOnce(tab, reload, 1_000_000)).toBe(true);
  expect(reloadOnce(tab, reload, 1_030_000)).toBe(false);
  expect(reload).toHaveBeenCalledOnce();
  expect(reloadOnce(tab, reload, 2_000_000)).toBe(true);
});

test('without storage it does not reload, because it could not stop', () => {
  const full = {
    getItem: () => null,
    setItem: () => {
      throw new Error('no room');
    },
  } as unknown as Storage;
  const reload = vi.fn();
  expect(reloadOnce(null, reload)).toBe(false);
  expect(reloadOnce(full, reload)).toBe(false);
  expect(reload).not.toHaveBeenCalled();
});
