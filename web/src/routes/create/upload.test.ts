// Uploads in parts: a lost response, a refusal with a report, and resuming.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { forgetSession, saveSession } from '../../lib/session';
import { PackageUpload } from './upload.svelte';

type Call = { method: string; path: string; offset: number | null };

const json = (body: unknown, status = 200) => new Response(JSON.stringify(body), { status });
const state = (received: number) => ({
  upload_id: 'up_1',
  size_bytes: 10,
  received_bytes: received,
  part_bytes_max: 4,
  channel: 'stable',
  expires_at: '',
});
const file = new Blob([new Uint8Array(10)]);
const wish = { channel: 'stable' as const, notes: '' };

/** An in-memory server; `answer` may override it. */
function serve(answer: (call: Call, received: number) => Response | 'lost' | null): Call[] {
  const calls: Call[] = [];
  let received = 0;
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    const url = new URL(path, 'http://frolic.test');
    const offset = url.searchParams.get('offset');
    const call = { method: init.method ?? 'GET', path: url.pathname, offset: offset === null ? null : Number(offset) };
    calls.push(call);
    if (call.offset === received) received = Math.min(10, received + (init.body as Blob).size);
    const own = answer(call, received);
    if (own === 'lost') throw new TypeError('the line is down');
    return own ?? (call.path.endsWith('/finish') ? json({ game_id: 'g', version: '1.0.0' }) : json(state(received)));
  });
  return calls;
}

beforeEach(() => {
  vi.useFakeTimers({ shouldAdvanceTime: true, advanceTimeDelta: 1000 });
  const stored = new Map<string, string>();
  vi.stubGlobal('localStorage', {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
    removeItem: (key: string) => stored.delete(key),
  });
  saveSession({ token: 't', clientId: 'c', username: 'Mira' });
});
afterEach(() => {
  forgetSession();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('a part whose response was lost is not sent twice', async () => {
  let lost = false;
  const calls = serve((call) => {
    if (call.offset !== 4 || lost) return null;
    lost = true;
    return 'lost';
  });
  const upload = new PackageUpload();
  await upload.start(file, wish);
  expect(upload.stage).toBe('done');
  expect(calls.filter(({ offset }) => offset !== null).map(({ offset }) => offset)).toEqual([0, 4, 8]);
  expect(upload.sent).toBe(10);
});

test('a refused package has a report and is not resumable', async () => {
  const report = {
    problems: [
      { severity: 'error', rule: 'scene', file: 'scene.json', line: 3, column: null, message: 'no spawn point' },
    ],
    omitted: 0,
  };
  const calls = serve((call) =>
    call.path.endsWith('/finish')
      ? json({ error: { code: 'invalid_package', message: 'Refused.', details: report } }, 422)
      : null,
  );
  const upload = new PackageUpload();
  await upload.start(file, wish);
  expect(upload.stage).toBe('failed');
  expect(upload.report?.problems[0]?.message).toBe('no spawn point');
  await upload.start(file, wish);
  expect(calls.filter(({ method, path }) => method === 'POST' && path === '/api/uploads')).toHaveLength(2);
});

test('the same file resumes after a reload', async () => {
  let down = true;
  const calls = serve((call) =>
    down && call.offset === 4 ? json({ error: { code: 'x', message: 'No.' } }, 403) : null,
  );
  await new PackageUpload().start(file, wish);
  down = false;
  const again = new PackageUpload();
  await again.start(file, wish);
  expect(again.stage).toBe('done');
  expect(calls.filter(({ method, path }) => method === 'POST' && path === '/api/uploads')).toHaveLength(1);
});
