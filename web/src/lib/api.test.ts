// The API client: guest login, one new login after a 401, and errors that can be shown.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError, call, listGames } from './api';
import { join } from './joining';
import { forgetSession, loadSession, saveSession } from './session';

type Handler = (path: string, init: RequestInit) => Response;

function serve(handler: Handler): string[] {
  const calls: string[] = [];
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    calls.push(path);
    return handler(path, init);
  });
  return calls;
}

const json = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status });

beforeEach(() => forgetSession());
afterEach(() => vi.unstubAllGlobals());

test('join logs in as a guest first and again once after a 401', async () => {
  let logins = 0;
  const calls = serve((path, init) => {
    if (path === '/login') return json({ session_token: `t${++logins}`, client_id: 'c', username: 'Guest' });
    const token = new Headers(init.headers).get('Authorization');
    return token === 'Bearer t2' ? json({ world_id: 'world_1' }) : json({ error: { code: 'x', message: 'no' } }, 401);
  });
  expect((await join({ game_id: 'obby' })).world_id).toBe('world_1');
  expect(calls).toEqual(['/login', '/join', '/login', '/join']);
});

test("an error carries the server's message", async () => {
  serve(() => json({ error: { code: 'bad_sort', message: 'Unknown sort.' } }, 400));
  await expect(listGames({ sort: 'popular' })).rejects.toMatchObject({
    status: 400,
    code: 'bad_sort',
    message: 'Unknown sort.',
  });
});

test("an unreachable server and a proxy's error page are readable errors", async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('fetch failed')));
  await expect(listGames({ sort: 'new' })).rejects.toMatchObject({ status: 0, code: 'unreachable' });
  serve(() => new Response('<html>bad gateway</html>', { status: 502 }));
  const error = await listGames({ sort: 'new' }).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(ApiError);
  expect((error as ApiError).message).toContain('502');
});

test('an expired account session is reported and not replaced by a guest', async () => {
  const calls = serve(() => json({ error: { code: 'session_expired', message: 'over' } }, 401));
  saveSession({ token: 't', clientId: 'c', username: 'Ada', kind: 'account', role: 'creator' });
  await expect(join({ game_id: 'obby' })).rejects.toMatchObject({ status: 401, code: 'session_over' });
  expect(calls).toEqual(['/join']);
  expect(loadSession()).toBe(null);
});

test('parameters are encoded; absent ones are left out', async () => {
  const calls = serve(() => json({ files: [] }));
  const path = { id: 'a game/…' };
  await call('GET', '/api/games/{id}/files', { path, query: { world_id: 'w&1' } });
  await call('GET', '/api/games/{id}/files', { path, query: { world_id: undefined } });
  expect(calls).toEqual([
    '/api/games/a%20game%2F%E2%80%A6/files?world_id=w%261',
    '/api/games/a%20game%2F%E2%80%A6/files',
  ]);
});
