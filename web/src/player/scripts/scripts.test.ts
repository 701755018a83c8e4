// Scripts from manifest to running: cache, order, reloads, events that come early, things that break.
import { expect, test, vi } from 'vitest';
import type { ScriptEntry, ScriptManifest } from '../core/events';
import type { ScriptHost } from './host';
import { ClientScripts, type Runtime } from './scripts';

const BUILTIN = '@builtin/client';
const HUD = 'StarterGui/Hud.luau';
const LATER = 'ReplicatedStorage/Later.luau';
const entry = (path: string, lazy = false): ScriptEntry => ({
  path,
  hash: `sha256:${path}`,
  size_bytes: 10,
  run_context: 'client',
  service: 'StarterGui',
  lazy,
  module: lazy,
  url: `/cdn/${path}`,
  entities: [],
});
const LIST = 'sha256:list';
const manifest: ScriptManifest = {
  version: 1,
  server_tick: 0,
  revision: 'abcdef0123456789',
  hash: LIST,
  size_bytes: 5,
  url: '/cdn/list',
  signature: '',
  list: null,
};
const bytes = new Uint8Array([1]);

/** A core that accepts offered content; `served` is what its server sends on request. */
function setUp({
  cached = [] as string[],
  onCdn = [] as string[],
  load,
}: { cached?: string[]; onCdn?: string[]; load?: () => Promise<Runtime> } = {}) {
  const calls: string[] = [];
  const runtime: Runtime = {
    run: (path) => calls.push(`run ${path}`),
    reload: (changed, removed) =>
      calls.push(`reload ${changed.map(({ path }) => path).join()} remove ${removed.join()}`),
    provide: (path) => calls.push(`provide ${path}`),
    dispatchEvent: (name) => calls.push(`event ${name}`),
    dispatchResult: (call, { ok }) => calls.push(`result ${call} ${ok}`),
    uiEvent: () => undefined,
    inputEvent: () => undefined,
    cast: ({ spellId }) => calls.push(`cast ${spellId}`),
    castRefused: (reason) => calls.push(`refused ${reason}`),
    playerEvent: () => undefined,
    terrainEvent: () => undefined,
    happened: (kind) => calls.push(`happened ${kind}`),
    tick: () => undefined,
    memoryBytes: 0,
    lastTickMs: 0,
    dispose: () => calls.push('dispose'),
  };
  const entries = [entry(BUILTIN), entry(HUD), entry(LATER, true)];
  const have = new Set<string>();
  const source = {
    script: (path: string) => (have.has(path) ? bytes : undefined),
    offer_script: (path: string) => (calls.push(`offer ${path}`), have.add(path), true),
    missing_scripts: () => JSON.stringify(entries.filter(({ path }) => !have.has(path))),
    request_scripts: (paths: string[]) => void calls.push(`request ${paths.join()}`),
    script_list: () => JSON.stringify({ game_id: 'g', revision: 'r', scripts: entries, bundles: [] }),
    script_list_bytes: () => bytes,
  };
  const cache = {
    get: async (hash: string) => (cached.includes(hash) ? bytes : null),
    getAll: async (hashes: string[]) => hashes.map((hash) => (cached.includes(hash) ? bytes : null)),
    put: async (hash: string) => void calls.push(`keep ${hash}`),
  };
  const fetcher = async (url: string) => (onCdn.includes(url) ? bytes : null);
  const log = (_level: string, text: string) => calls.push(`log ${text}`);
  const host = { log, callOf: (id: number) => id - 1000 } as unknown as ScriptHost;
  const started = vi.fn();
  const progress = vi.fn();
  const scripts = new ClientScripts(source, host, cache, load ?? (async () => runtime), started, fetcher, progress);
  return { calls, scripts, started, runtime, have, progress };
}

test('cached list and scripts are offered, and nothing is requested', async () => {
  const { calls, scripts } = setUp({ cached: [LIST, `sha256:${BUILTIN}`, `sha256:${HUD}`, `sha256:${LATER}`] });
  await scripts.manifest(manifest);
  await scripts.list();
  expect(calls.filter((call) => call.startsWith('offer'))).toEqual([
    'offer @manifest',
    `offer ${BUILTIN}`,
    `offer ${HUD}`,
    `offer ${LATER}`,
  ]);
  expect(calls.some((call) => call.startsWith('request'))).toBe(false);
});

test('missing scripts are fetched by URL, else requested; optional ones last', async () => {
  const { calls, scripts, progress } = setUp({ onCdn: ['/cdn/list', `/cdn/${HUD}`] });
  await scripts.manifest(manifest);
  expect(calls).toEqual(['offer @manifest']);
  await scripts.list();
  expect(calls.slice(1)).toEqual([
    `keep ${LIST}`,
    `request ${BUILTIN}`,
    `offer ${HUD}`,
    `keep sha256:${HUD}`,
    `request ${LATER}`,
  ]);
  expect(progress).toHaveBeenLastCalledWith(20, 20, HUD);
});

test('events wait until all client scripts run', async () => {
  const { calls, scripts, started, have } = setUp();
  scripts.event('early', []);
  await scripts.manifest(manifest);
  [BUILTIN, HUD].forEach((path) => have.add(path));
  scripts.run(BUILTIN);
  scripts.run(HUD);
  expect(started).not.toHaveBeenCalled();
  scripts.allTold();
  scripts.event('later', []);
  expect(calls.slice(-4)).toEqual([`run ${BUILTIN}`, `run ${HUD}`, 'event early', 'event later']);
  expect(started).toHaveBeenCalledOnce();
});

test('events queued when the connection is lost are delivered to the next scripts', () => {
  const { calls, scripts } = setUp();
  scripts.event('first', []);
  scripts.event('second', [1]);
  expect(scripts.takeWaiting()).toEqual([
    { name: 'first', args: [] },
    { name: 'second', args: [1] },
  ]);
  scripts.allTold();
  expect(scripts.takeWaiting()).toEqual([]);
  expect(calls).toEqual([]);
});

test('scripts started before the VM is loaded run once it is', async () => {
  let arrive: (runtime: Runtime) => void = () => undefined;
  const { calls, scripts, runtime, have } = setUp({ load: () => new Promise((resolve) => (arrive = resolve)) });
  await scripts.manifest(manifest);
  [BUILTIN, HUD].forEach((path) => have.add(path));
  scripts.run(BUILTIN);
  scripts.run(HUD);
  arrive(runtime);
  await vi.waitFor(() => expect(calls.slice(-2)).toEqual([`run ${BUILTIN}`, `run ${HUD}`]));
});

test('a reload requests changed scripts and replaces them in the running VM', async () => {
  const { calls, scripts, have } = setUp({ onCdn: ['/cdn/list'] });
  await scripts.manifest(manifest);
  [BUILTIN, HUD].forEach((path) => have.add(path));
  scripts.allTold();
  have.delete(HUD);
  calls.length = 0;
  await scripts.manifest({ ...manifest, version: 2, hash: 'sha256:list2' });
  expect(calls).toEqual(['request @manifest']);
  await scripts.list();
  expect(calls).toContain(`request ${HUD}`);
  have.add(HUD);
  scripts.reload([HUD], ['StarterGui/Old.luau']);
  expect(calls.at(-1)).toBe(`reload ${HUD} remove StarterGui/Old.luau`);
});

test('a required module is requested once and passed to the VM on arrival', async () => {
  const { calls, scripts, have } = setUp();
  await scripts.manifest(manifest);
  await scripts.list();
  calls.length = 0;
  expect(scripts.want(LATER)).toBe(true);
  expect(scripts.want(LATER)).toBe(true);
  expect(scripts.want('ReplicatedStorage/None.luau')).toBe(false);
  have.add(LATER);
  scripts.verified(LATER, `sha256:${LATER}`);
  expect(calls).toEqual([`request ${LATER}`, `keep sha256:${LATER}`, `provide ${LATER}`]);
  expect(scripts.want(LATER)).toBe(false);
});

test('a result reaches its caller even while other scripts are loading', async () => {
  const { calls, scripts } = setUp();
  await scripts.manifest(manifest);
  scripts.result(1007, { ok: true, values: [5] });
  expect(calls.at(-1)).toBe('result 7 true');
});

test('one broken script does not stop the next, and its error names its revision', async () => {
  const { calls, scripts, runtime, started, have } = setUp();
  runtime.run = (path) => {
    if (path === BUILTIN) throw new Error('broken');
    calls.push(`run ${path}`);
  };
  await scripts.manifest(manifest);
  [BUILTIN, HUD].forEach((path) => have.add(path));
  scripts.run(BUILTIN);
  scripts.run(HUD);
  scripts.allTold();
  expect(calls.slice(-2)).toEqual(['log broken', `run ${HUD}`]);
  expect(started).toHaveBeenCalledOnce();
  await scripts.list();
  expect(scripts.origin(HUD)).toBe('revision abcdef01, script StarterG');
});

test('without a VM the game still starts', async () => {
  const broken = setUp({ load: () => Promise.reject(new Error('no wasm')) });
  await broken.scripts.manifest(manifest);
  await vi.waitFor(() => expect(broken.started).toHaveBeenCalledOnce());
  expect(broken.calls).toContain('log scripts cannot run: no wasm');
});
