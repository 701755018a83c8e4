// A waiting join: polls, reports why it waits, survives a lost connection, and can be cancelled.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { JoinProgress } from '../generated/rest';
import { join, waitText } from './joining';
import { forgetSession, saveSession } from './session';

const json = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status });
const progress = (step: number, more: Partial<JoinProgress> = {}): JoinProgress => ({
  join_id: 'join_1',
  stage: 'queued',
  message: 'The world is full: you are next',
  position: 1,
  waiting: 1,
  expected_s: null,
  waited_s: 1,
  step,
  ...more,
});

beforeEach(() => saveSession({ token: 't', clientId: 'c', username: 'Ada' }));
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
  forgetSession();
});

test('it polls from the last known state until it is placed', async () => {
  const answers = [json(progress(1, { position: 2 }), 202), json(progress(2), 202), json({ world_id: 'world_1' })];
  const calls: string[] = [];
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    calls.push(`${init.method} ${path}`);
    return answers.shift();
  });
  const positions: (number | null)[] = [];
  const joined = await join({ game_id: 'obby' }, { onwait: (wait) => positions.push(wait.position) });
  expect(joined.world_id).toBe('world_1');
  expect(positions).toEqual([2, 1]);
  expect(calls).toEqual(['POST /join', 'GET /join/join_1?after=1&wait_s=15', 'GET /join/join_1?after=2&wait_s=15']);
});

test('a short connection loss does not end the join', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  let asked = 0;
  vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
    if (init.method === 'POST') return json(progress(1), 202);
    asked += 1;
    if (asked === 1) throw new TypeError('fetch failed');
    return json({ world_id: 'world_1' });
  });
  const joined = join({ game_id: 'obby' });
  await vi.advanceTimersByTimeAsync(1000);
  expect((await joined).world_id).toBe('world_1');
});

test('leaving cancels the join', async () => {
  const abort = new AbortController();
  const calls: string[] = [];
  vi.stubGlobal('fetch', (_: string, init: RequestInit) => {
    calls.push(init.method ?? '');
    if (init.method === 'POST') return Promise.resolve(json(progress(1), 202));
    if (init.method === 'DELETE') return Promise.resolve(new Response(null, { status: 204 }));
    return new Promise((_resolve, reject) =>
      init.signal?.addEventListener('abort', () => reject(new DOMException('left', 'AbortError'))),
    );
  });
  const joined = join({ game_id: 'obby' }, { onwait: () => setTimeout(() => abort.abort()), signal: abort.signal });
  await expect(joined).rejects.toMatchObject({ name: 'AbortError' });
  expect(calls).toEqual(['POST', 'GET', 'DELETE']);
});

test.each([
  [null, 'The world is full: you are next'],
  [1.2, 'The world is full: you are next'],
  [12, 'The world is full: you are next, about 15 seconds'],
  [150, 'The world is full: you are next, about 3 minutes'],
])('what is expected in %s s is said in words', (expected_s, text) => {
  expect(waitText(progress(1, { expected_s }))).toBe(text);
});
