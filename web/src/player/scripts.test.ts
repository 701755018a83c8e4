// Order of scripts and events, whatever the order in which they arrive.
import { expect, test, vi } from 'vitest';
import type { ScriptEntry } from './events';
import type { ScriptHost } from './scripthost';
import { ClientScripts, type Runtime } from './scripts';

function setUp(load?: () => Promise<Runtime>) {
  const calls: string[] = [];
  const runtime: Runtime = {
    run: (path) => calls.push(`run ${path}`),
    dispatchEvent: (name) => calls.push(`event ${name}`),
    tick: () => calls.push('tick'),
    memoryBytes: 0,
    lastTickMs: 0,
    dispose: () => calls.push('dispose'),
  };
  const host = { log: (_level: string, text: string) => calls.push(`log ${text}`) } as unknown as ScriptHost;
  const started = vi.fn();
  const scripts = new ClientScripts(host, load ?? (async () => runtime), started);
  return { calls, scripts, started, runtime };
}

const entries = ['@builtin/client', 'StarterGui/A.luau', 'StarterGui/B.luau'].map(
  (path) => ({ path, hash: path, size_bytes: 1, run_context: 'client', service: 'StarterGui', entities: [] }) as ScriptEntry,
);
const bytes = new Uint8Array([1]);

test('scripts run in manifest order and events wait for all of them', async () => {
  const { calls, scripts, started } = setUp();
  scripts.event('early', []);
  scripts.manifest(entries);
  scripts.ready('StarterGui/B.luau', bytes);
  scripts.ready('@builtin/client', bytes);
  await vi.waitFor(() => expect(calls).toContain('run @builtin/client'));
  scripts.event('later', []);
  expect(started).not.toHaveBeenCalled();
  scripts.ready('StarterGui/A.luau', bytes);
  expect(calls).toEqual(['run @builtin/client', 'run StarterGui/A.luau', 'run StarterGui/B.luau', 'event early', 'event later']);
  expect(started).toHaveBeenCalledOnce();
});

test('one broken script does not stop the next', async () => {
  const { calls, scripts, runtime } = setUp();
  const run = runtime.run;
  runtime.run = (path, code) => {
    if (path.endsWith('A.luau')) throw new Error('A is broken');
    run(path, code);
  };
  scripts.manifest(entries);
  for (const { path } of entries) scripts.ready(path, bytes);
  await vi.waitFor(() => expect(calls).toEqual(['run @builtin/client', 'log A is broken', 'run StarterGui/B.luau']));
});

test('no scripts, or no VM: the game starts all the same', async () => {
  const none = setUp();
  none.scripts.manifest([]);
  expect(none.started).toHaveBeenCalledOnce();
  const broken = setUp(() => Promise.reject(new Error('no wasm')));
  broken.scripts.manifest(entries);
  await vi.waitFor(() => expect(broken.started).toHaveBeenCalledOnce());
  expect(broken.calls).toEqual(['log scripts cannot run: no wasm']);
});
