// Scripts from manifest to running: cache, order, events that come early, things that break.
import { expect, test, vi } from 'vitest';
import type { ScriptEntry } from './events';
import type { ScriptHost } from './scripthost';
import { ClientScripts, type Runtime } from './scripts';

const BUILTIN = '@builtin/client';
const HUD = 'StarterGui/Hud.luau';
const entry = (path: string, run_context: ScriptEntry['run_context'] = 'client'): ScriptEntry => ({
  path, hash: `sha256:${path}`, size_bytes: 1, run_context, service: 'StarterGui', entities: [],
});
const entries = [entry(BUILTIN), entry(HUD), entry('ServerScriptService/Main.luau', 'server')];

function setUp(cached: string[] = [], load?: () => Promise<Runtime>) {
  const calls: string[] = [];
  const runtime: Runtime = {
    run: (path) => calls.push(`run ${path}`),
    dispatchEvent: (name) => calls.push(`event ${name}`),
    dispatchResult: (call, { ok }) => calls.push(`result ${call} ${ok}`),
    uiEvent: () => undefined,
    inputEvent: () => undefined,
    playerEvent: () => undefined,
    tick: () => undefined,
    memoryBytes: 0,
    lastTickMs: 0,
    dispose: () => calls.push('dispose'),
  };
  const source = {
    script: () => new Uint8Array([1]),
    offer_script: (path: string) => (calls.push(`offer ${path}`), true),
    request_missing_scripts: () => void calls.push('request'),
  };
  const cache = {
    get: async (hash: string) => (cached.includes(hash) ? new Uint8Array([1]) : null),
    put: async (hash: string) => void calls.push(`keep ${hash}`),
  };
  const log = (_level: string, text: string) => calls.push(`log ${text}`);
  const host = { log, callOf: (id: number) => id - 1000 } as unknown as ScriptHost;
  const started = vi.fn();
  const scripts = new ClientScripts(source, host, cache, load ?? (async () => runtime), started);
  return { calls, scripts, started, runtime };
}

test('what was kept is offered before the rest is asked for', async () => {
  const { calls, scripts } = setUp([`sha256:${HUD}`]);
  await scripts.manifest(entries);
  expect(calls).toEqual([`offer ${HUD}`, 'request']);
  scripts.verified(BUILTIN, `sha256:${BUILTIN}`);
  expect(calls).toContain(`keep sha256:${BUILTIN}`);
});

test('events wait until all client scripts run', async () => {
  const { calls, scripts, started } = setUp();
  scripts.event('early', []);
  await scripts.manifest(entries);
  scripts.run(BUILTIN);
  expect(started).not.toHaveBeenCalled();
  scripts.run(HUD);
  scripts.event('later', []);
  expect(calls.slice(1)).toEqual([`run ${BUILTIN}`, `run ${HUD}`, 'event early', 'event later']);
  expect(started).toHaveBeenCalledOnce();
});

test('scripts that should run before the VM is there run when it is', async () => {
  let arrive: (runtime: Runtime) => void = () => undefined;
  const { calls, scripts, runtime } = setUp([], () => new Promise((resolve) => (arrive = resolve)));
  await scripts.manifest(entries);
  scripts.run(BUILTIN);
  scripts.run(HUD);
  arrive(runtime);
  await vi.waitFor(() => expect(calls).toEqual(['request', `run ${BUILTIN}`, `run ${HUD}`]));
});

test('an answer reaches the script that waits for it, even while others are on their way', async () => {
  const { calls, scripts } = setUp();
  await scripts.manifest(entries);
  scripts.run(BUILTIN);
  scripts.result(1007, { ok: true, values: [5] });
  expect(calls.at(-1)).toBe('result 7 true');
});

test('one broken script does not stop the next', async () => {
  const { calls, scripts, runtime, started } = setUp();
  runtime.run = (path) => {
    if (path === BUILTIN) throw new Error('broken');
    calls.push(`run ${path}`);
  };
  await scripts.manifest(entries);
  scripts.run(BUILTIN);
  scripts.run(HUD);
  expect(calls).toEqual(['request', 'log broken', `run ${HUD}`]);
  expect(started).toHaveBeenCalledOnce();
});

test('no scripts, or no VM: the game starts all the same', async () => {
  const none = setUp();
  await none.scripts.manifest([]);
  expect(none.started).toHaveBeenCalledOnce();
  const broken = setUp([], () => Promise.reject(new Error('no wasm')));
  await broken.scripts.manifest(entries);
  await vi.waitFor(() => expect(broken.started).toHaveBeenCalledOnce());
  expect(broken.calls).toContain('log scripts cannot run: no wasm');
});
