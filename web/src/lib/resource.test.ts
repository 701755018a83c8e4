// Requests that fail without a network are retried automatically.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from './api';
import { Resource } from './resource.svelte';

const unreachable = new ApiError(0, 'unreachable', 'Frolic did not answer.');

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test('a request that did not reach the server is retried until it does', async () => {
  let calls = 0;
  const resource = new Resource(async () => {
    calls += 1;
    if (calls < 3) throw unreachable;
    return 'games';
  });
  await resource.load();
  expect(resource.error).toBe(unreachable);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(calls).toBe(3);
  expect(resource.value).toBe('games');
  expect(resource.error).toBe(null);
  expect(resource.loading).toBe(false);
});

test('going online retries immediately', async () => {
  const events = new EventTarget();
  vi.stubGlobal('addEventListener', events.addEventListener.bind(events));
  let calls = 0;
  const resource = new Resource(async () => {
    calls += 1;
    if (calls === 1) throw unreachable;
    return calls;
  });
  await resource.load();
  events.dispatchEvent(new Event('online'));
  await vi.advanceTimersByTimeAsync(0);
  expect(resource.value).toBe(2);
  // The pending retry does not run a second time.
  await vi.advanceTimersByTimeAsync(60_000);
  expect(calls).toBe(2);
  vi.unstubAllGlobals();
});

test('refused and aborted requests are not retried', async () => {
  let calls = 0;
  const refused = new Resource(async () => {
    calls += 1;
    throw new ApiError(404, 'game_not_found', 'There is no such game.');
  });
  await refused.load();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(calls).toBe(1);

  const given = new Resource(async () => {
    calls += 1;
    throw unreachable;
  });
  await given.load();
  given.cancel();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(calls).toBe(2);
});
