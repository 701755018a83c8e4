// One visit with a world that is played by the test: what is shown after a reconnection, what reaches scripts across it,
// and how a visit ends whose page does not understand its server.
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type * as Core from '../generated/core';
import type { ClientCore } from './core/core';
import type { LinkOptions } from './connection/link';

const opened: FakeLink[] = [];
const views: FakeView[] = [];
const dispatched: string[] = [];
let vm: Promise<unknown>;

/** A connection whose core tells what the test puts into it. */
class FakeLink {
  readonly events: object[] = [];
  gone: number[] = [];
  parts: object | null = null;
  isOpen = true;
  advanced = 0;
  liveness = 0;
  readonly kind = 'webtransport';
  readonly join = { world_id: 'w', room_code: 'ROOM' };
  readonly core = {
    take_event: () => JSON.stringify(this.events.shift()),
    take_part_changes: () => {
      const changes = this.parts && JSON.stringify(this.parts);
      this.parts = null;
      return changes ?? undefined;
    },
    terrain_settings: () => undefined,
    frame: () => new Float32Array(0),
    removed: () => new Uint32Array(this.gone.splice(0)),
    shots: () => new Float32Array(0),
    resume_token: () => 'token',
    script: () => new Uint8Array(1),
    request_scripts() {},
    set_input() {},
    advance: () => void (this.advanced += 1),
    liveness: () => this.liveness,
    world_time: () => 1,
    free() {},
  } as unknown as ClientCore;

  constructor(readonly options: LinkOptions) {
    opened.push(this);
  }

  tell(...events: object[]): void {
    this.events.push(...events);
    this.options.onreceived();
  }

  lose(cause: 'lost' | 'unreadable' = 'lost'): void {
    this.isOpen = false;
    this.options.onclosed('gone', cause);
  }

  flush() {}
  leave() {}
  close() {
    this.isOpen = false;
  }
}

class FakeView {
  readonly did: string[] = [];
  readonly ownId = 1;
  readonly ownPosition = { x: 0, y: 0, z: 0 };
  readonly ground = { clear() {} };

  constructor() {
    views.push(this);
  }

  setScene = (parts: Iterable<{ id: number }>) =>
    void this.did.push(`scene ${Array.from(parts, ({ id }) => id).join()}`.trim());
  changeParts = (changes: { removed: number[] }) => void this.did.push(`without ${changes.removed.join()}`);
  apply = (_frame: Float32Array, removed: Uint32Array) => void this.did.push(`apply ${[...removed].join()}`.trim());
  render = () => void this.did.push('render');
  spawnYaw = () => 0;
  applyShots() {}
  setCombat() {}
  setPlayers() {}
  dispose() {}
}

vi.mock('./connection/link', () => ({ WorldLink: { open: async (options: LinkOptions) => new FakeLink(options) } }));
// The policy decides as in the browser: it is the real one.
const [loadModule] = Object.values(
  import.meta.glob<typeof Core & { initSync(options: object): unknown }>('../wasm/frolic_client_wasm.js'),
);
if (!loadModule) throw new Error('src/wasm is empty; run `cargo xtask wasm` first');
const module = await loadModule();
module.initSync({ module: readFileSync('src/wasm/frolic_client_wasm_bg.wasm') });
vi.mock('./core/core', async (original) => ({
  ...(await original<object>()),
  newReconnectPolicy: () => new module.ReconnectPolicy(),
}));
vi.mock('./view/world-view', () => ({ WorldView: FakeView }));
vi.mock('./scripts/luau-loader', () => ({ loadLuau: () => vm }));

const { PlaySession } = await import('./session.svelte');
const { outdated } = await import('./connection/exit-reasons');

const WELCOME = { type: 'welcome', resumeToken: 'token', entityId: 1, playerNumber: 1 };
const MANIFEST = { type: 'scriptManifest', manifest: { hash: 'sha256:list', url: '/list', revision: 'r' } };
const OLD_PAGE = { type: 'error', code: 'unsupported_version', message: 'this server speaks another version' };
const KICK = { type: 'kick', reason: 'this server speaks another version' };
const reload = vi.fn();
const kept = new Map<string, string>();

beforeEach(() => {
  opened.length = views.length = dispatched.length = 0;
  kept.clear();
  reload.mockClear();
  vm = new Promise(() => undefined);
  vi.useFakeTimers();
  vi.stubGlobal('document', { pointerLockElement: null });
  vi.stubGlobal('navigator', {});
  vi.stubGlobal('location', { reload });
  vi.stubGlobal('fetch', () => Promise.reject(new Error('no network here')));
  vi.stubGlobal('sessionStorage', {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  });
  for (const level of ['warn', 'info', 'error'] as const) vi.spyOn(console, level).mockImplementation(() => undefined);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** A visit whose first connection is open. */
async function visit() {
  const session = new PlaySession({ gameId: 'game', wish: {}, transport: null, quality: null });
  await session.start({} as HTMLCanvasElement);
  return session;
}

/** The connection number `index`, once it is open. */
async function link(index: number): Promise<FakeLink> {
  for (let waited = 0; opened.length <= index && waited < 100; waited++) await vi.advanceTimersByTimeAsync(100);
  const found = opened[index];
  if (!found) throw new Error(`connection ${index} was never opened`);
  return found;
}

function showWorld(to: FakeLink): void {
  to.parts ??= { changed: [], removed: [] };
  to.tell(WELCOME, { type: 'scene' });
}

test('what was destroyed stays so after a reconnection whose snapshot overtakes the scene', async () => {
  const session = await visit();
  showWorld(await link(0));
  session.draw(0, 0.016);
  expect(session.connection.phase).toBe('playing');
  opened[0]?.lose();
  const next = await link(1);
  const view = views[0];
  if (view) view.did.length = 0;
  next.tell(WELCOME);
  next.gone = [1007];
  session.draw(16, 0.016);
  expect(view?.did, 'the world of before stays on the screen').toEqual(['render']);
  next.parts = { changed: [{ id: 6 }, { id: 8 }], removed: [] };
  showWorld(next);
  session.draw(32, 0.016);
  next.parts = { changed: [], removed: [8] };
  next.tell();
  expect(view?.did).toEqual(['render', 'scene 6,8', 'apply 1007', 'render', 'without 8']);
  expect([...session.parts.keys()]).toEqual([6]);
});

test('events are taken when they come, not when the page is drawn', async () => {
  const session = await visit();
  const world = await link(0);
  world.tell(WELCOME, { type: 'chat', from: 'Ada', text: 'hello', playerId: 'p' });
  expect(world.events).toEqual([]);
  expect(session.model.chat.lines.map(({ text }) => text)).toEqual(['hello']);
});

test('events that waited for scripts reach those of the next connection', async () => {
  await visit();
  (await link(0)).tell(WELCOME, MANIFEST, { type: 'event', name: 'first', args: [] });
  opened[0]?.lose();
  const next = await link(1);
  vm = Promise.resolve({ dispatchEvent: (name: string) => dispatched.push(name), run() {} });
  next.tell(WELCOME, MANIFEST, { type: 'event', name: 'second', args: [] }, { type: 'scriptsStarted' });
  await vi.advanceTimersByTimeAsync(0);
  expect(dispatched).toEqual(['first', 'second']);
});

test('a page that is older than its server is loaded anew, and finds its place', async () => {
  const session = await visit();
  showWorld(await link(0));
  opened[0]?.tell({ type: 'error', code: 'restarting', message: 'the server stops' });
  opened[0]?.lose();
  const next = await link(1);
  next.tell(OLD_PAGE, KICK);
  next.lose();
  expect(session.connection.ending).toEqual(outdated);
  expect(reload).toHaveBeenCalledOnce();
  expect(kept.get('frolic.place')).toContain('token');
  await vi.advanceTimersByTimeAsync(120_000);
  expect(opened).toHaveLength(2);
});

test('where a new page is no better it says so instead of loading for ever', async () => {
  await visit();
  (await link(0)).tell(OLD_PAGE, KICK);
  const again = await visit();
  (await link(1)).tell(OLD_PAGE, KICK);
  expect(again.connection.ending).toEqual(outdated);
  expect(reload).toHaveBeenCalledOnce();
});

test.each([[[]], [[WELCOME]]])(
  'bytes that nobody can read are an accident once, and the end when they come again',
  async (said) => {
    const session = await visit();
    const first = await link(0);
    first.tell(...said);
    first.lose('unreadable');
    expect(session.connection.ending).toBeNull();
    const second = await link(1);
    second.tell(...said);
    second.lose('unreadable');
    expect(session.connection.ending).toEqual(outdated);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(opened).toHaveLength(2);
  },
);

test('keys play the game while nothing else has them, whatever was opened and closed in whichever order', async () => {
  const session = await visit();
  expect(session.model.takesInput, 'loading').toBe(false);
  showWorld(await link(0));
  session.draw(0, 0.016);
  expect(session.model.takesInput).toBe(true);
  session.model.chat.writing = true;
  expect(session.input.enabled).toBe(false);
  session.model.pause(true);
  // The chat goes when the menu comes; that must not give the keys back.
  session.model.chat.writing = false;
  session.input.key('KeyW', true);
  expect([session.input.enabled, session.input.move()]).toEqual([false, { x: 0, y: 0 }]);
  session.model.pause(false);
  expect(session.input.enabled).toBe(true);
});

test('a connection that brings nothing is shown as a problem, and one that is dead is replaced', async () => {
  const session = await visit();
  showWorld(await link(0));
  session.draw(0, 0.016);
  const world = opened[0]!;
  world.liveness = 1;
  session.advance(16);
  expect([session.connection.stalled, session.connection.phase]).toEqual([true, 'playing']);
  world.liveness = 0;
  session.advance(32);
  expect(session.connection.stalled).toBe(false);
  world.liveness = 2;
  session.advance(48);
  expect([session.connection.stalled, session.connection.phase, world.isOpen]).toEqual([false, 'reconnecting', false]);
  await link(1);
});

test('another tab of the same person ends this one with a way back, and without reconnecting', async () => {
  const session = await visit();
  showWorld(await link(0));
  session.draw(0, 0.016);
  opened[0]?.tell(
    { type: 'error', code: 'replaced', message: 'You opened this game somewhere else.' },
    { type: 'kick', reason: 'You opened this game somewhere else.' },
  );
  opened[0]?.lose();
  expect(session.connection.ending).toMatchObject({
    title: 'You opened this game in another tab',
    retryLabel: 'Play here instead',
    retry: true,
  });
  await vi.advanceTimersByTimeAsync(120_000);
  expect(opened).toHaveLength(1);
});
