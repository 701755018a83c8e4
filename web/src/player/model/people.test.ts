// Mutes persist in this browser; blocked players are hidden as well.
import { beforeEach, expect, test, vi } from 'vitest';
import { People } from './people.svelte';

beforeEach(() => {
  const stored = new Map<string, string>();
  vi.stubGlobal('localStorage', {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
    removeItem: (key: string) => stored.delete(key),
  });
});

test('a mute persists and can be removed', () => {
  const people = new People();
  people.mute('user_1', true);
  expect(people.hides('user_1')).toBe(true);
  expect(new People().hides('user_1')).toBe(true);
  people.mute('user_1', false);
  expect(new People().hides('user_1')).toBe(false);
});

test('a block is stored by the platform or has no effect', async () => {
  localStorage.setItem('frolic.session', JSON.stringify({ token: 't', clientId: 'user_0', username: 'Ada' }));
  const asked: string[] = [];
  vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
    asked.push(`${init.method} ${url}`);
    const refused = url.endsWith('user_9');
    return Promise.resolve(
      new Response(refused ? JSON.stringify({ error: { code: 'user_not_found', message: 'unknown user' } }) : null, {
        status: refused ? 404 : 204,
      }),
    );
  });
  const people = new People();
  await people.block('user_1', true);
  expect(people.hides('user_1')).toBe(true);
  await people.block('user_1', false);
  expect(people.hides('user_1')).toBe(false);
  await expect(people.block('user_9', true)).rejects.toThrow('unknown user');
  expect(people.hides('user_9')).toBe(false);
  expect(asked).toEqual(['PUT /api/blocks/user_1', 'DELETE /api/blocks/user_1', 'PUT /api/blocks/user_9']);
});

test('invalid storage content mutes no one', () => {
  localStorage.setItem('frolic.muted', '{"a":1}');
  expect(new People().muted.size).toBe(0);
  localStorage.setItem('frolic.muted', '[1,"user_2"]');
  expect([...new People().muted]).toEqual(['user_2']);
});
