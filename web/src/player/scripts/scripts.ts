// Client scripts of the game: offered from the cache or fetched, verified by the core, run when the server says so, fed
// with events, replaced when they change. A game whose scripts fail stays playable; the error goes to the console.
import type { ClientCore } from '../core/core';
import type { Cast, ScriptEntry, ScriptManifest, WireValue } from '../core/events';
import type { ScriptUnit } from '../../generated/ScriptUnit';
import type { InputEvent } from '../input/input';
import type { ScriptHost } from './host';
import type { ScriptCache } from './cache';
import type { ScriptList } from '../../generated/ScriptList';

/** A script with its code, for a running VM. */
export interface NewCode {
  path: string;
  bytecode: Uint8Array;
  entities: number[];
  /** Runs when something requires it. */
  module: boolean;
}

/** The VM in the browser (luau/runtime.ts), as far as the player uses it. */
export interface Runtime {
  /** `entities`: the entities the script is attached to. `module`: runs when required. */
  run(path: string, bytecode: Uint8Array, entities?: number[], module?: boolean): void;
  /** Replaces code; running instances restart with their state. */
  reload(changed: NewCode[], removed: string[]): void;
  /** A late module has arrived. */
  provide(path: string, bytecode: Uint8Array): void;
  dispatchEvent(name: string, args: WireValue[]): void;
  dispatchResult(call: number, outcome: InvokeOutcome): void;
  /** A widget of a script was clicked, or a line of a list chosen. */
  uiEvent(id: number, event: string, index?: number): void;
  inputEvent(event: InputEvent): void;
  playerEvent(here: boolean, number: number): void;
  cast(cast: Cast): void;
  castRefused(reason: string): void;
  terrainEvent(min: [number, number, number], max: [number, number, number]): void;
  happened(kind: Happening, values: WireValue[]): void;
  tick(dtSeconds: number): void;
  readonly memoryBytes: number;
  readonly lastTickMs: number;
  dispose(): void;
}

/** World events delivered to scripts; `engine.happened` in crates/script/builtin/client. */
export type Happening = 'npc' | 'shot' | 'impact' | 'terrainRefused';

/** The outcome of a `Network.InvokeServer`. */
export type InvokeOutcome = { ok: true; values: WireValue[] } | { ok: false; error: string };

export type RuntimeLoader = (host: ScriptHost) => Promise<Runtime>;
/** The methods of the core used by scripts. */
export type ScriptSource = Pick<
  ClientCore,
  'script' | 'offer_script' | 'missing_scripts' | 'request_scripts' | 'script_list' | 'script_list_bytes'
>;
/** The methods of the cache used here. */
export type Cache = Pick<ScriptCache, 'get' | 'getAll' | 'put'>;
/** Content by its URL; null when unavailable. */
export type Fetcher = (url: string) => Promise<Uint8Array | null>;
/** Loaded bytes, total bytes and the last loaded script. */
export type ProgressListener = (haveBytes: number, totalBytes: number, name: string) => void;

/** An event received before all scripts ran. */
export interface WaitingEvent {
  name: string;
  args: WireValue[];
}

const MANIFEST = '@manifest';
const BUILTIN = '@builtin/';
const BUNDLE = '@bundle/';
/** Maximum queued events; above it the oldest are dropped. The server's limit for disconnected players. */
const EVENTS_WAITING_MAX = 2048;
/** Parallel downloads of required scripts, and of those that may be needed later. */
const LANES = 8;
const LAZY_LANES = 2;

export class ClientScripts {
  #manifest: ScriptManifest | null = null;
  #entries = new Map<string, ScriptEntry>();
  #bundles = new Map<string, string[]>();
  /** Incremented with every manifest: work for an older one is dropped. */
  #turn = 0;
  #work: ((runtime: Runtime) => void)[] = [];
  #allTold = false;
  #runtime: Runtime | null = null;
  #loading = false;
  #waiting: WaitingEvent[] = [];
  #started = false;
  #disposed = false;
  /** Modules that a script waits for. */
  #wanted = new Set<string>();

  constructor(
    private readonly source: ScriptSource,
    private readonly host: ScriptHost,
    private readonly cache: Cache,
    private readonly loadRuntime: RuntimeLoader,
    /** Called when the scripts run, or when they cannot run. */
    private readonly onstarted: () => void,
    private readonly fetchContent: Fetcher = fetchBytes,
    private readonly onprogress: ProgressListener = () => undefined,
  ) {}

  get memoryBytes(): number {
    return this.#runtime?.memoryBytes ?? 0;
  }

  get lastTickMs(): number {
    return this.#runtime?.lastTickMs ?? 0;
  }

  /** The current script manifest, received at the start and after every reload. */
  async manifest(manifest: ScriptManifest): Promise<void> {
    const turn = ++this.#turn;
    this.#manifest = manifest;
    this.#allTold = false;
    void this.#load();
    const cached = await this.cache.get(manifest.hash);
    if (!this.#is(turn)) return;
    if (cached && this.source.offer_script(MANIFEST, cached)) return;
    // While the world runs, the game server is faster than any cache in front of the platform.
    const fetched = this.#started ? null : await this.fetchContent(manifest.url);
    if (!this.#is(turn)) return;
    if (!this.#takes(MANIFEST, fetched)) this.source.request_scripts([MANIFEST]);
  }

  /** The list is verified: offers cached scripts to the core, then fetches the rest. */
  async list(): Promise<void> {
    const turn = this.#turn;
    const json = this.source.script_list();
    if (json === undefined || !this.#manifest) return;
    const list = JSON.parse(json) as ScriptList;
    const bytes = this.source.script_list_bytes();
    if (bytes) void this.cache.put(this.#manifest.hash, bytes);
    this.#entries = new Map(list.scripts.map((entry) => [entry.path, entry]));
    this.#bundles = new Map(list.bundles.map((bundle) => [BUNDLE + bundle.name, bundle.scripts]));
    const lacking = list.scripts.filter((entry) => this.source.script(entry.path) === undefined);
    const cached = await this.cache.getAll(lacking.map((entry) => entry.hash));
    if (!this.#is(turn)) return;
    lacking.forEach((entry, i) => {
      const code = cached[i];
      if (code && this.source.offer_script(entry.path, code) && entry.lazy) this.#provide(entry.path);
    });
    const units = JSON.parse(this.source.missing_scripts()) as ScriptUnit[];
    const needed = units.filter((unit) => !unit.lazy);
    const total = needed.reduce((sum, unit) => sum + unit.size_bytes, 0);
    let have = 0;
    const arrived = (unit: ScriptUnit): void => this.onprogress((have += unit.size_bytes), total, unit.path);
    if (total > 0) this.onprogress(0, total, '');
    if (this.#started) this.source.request_scripts(needed.map((unit) => unit.path));
    else await this.#fetchAll(needed, LANES, turn, arrived);
    if (this.#is(turn))
      await this.#fetchAll(
        units.filter((unit) => unit.lazy),
        LAZY_LANES,
        turn,
      );
  }

  /** A script has arrived over the game's connection and matches its hash. */
  verified(path: string, hash: string): void {
    const bytes = this.source.script(path);
    if (!bytes) return;
    void this.cache.put(hash, bytes);
    if (this.#entries.get(path)?.lazy) this.#provide(path);
  }

  /** The server starts a script. */
  run(path: string): void {
    this.#later((runtime) => {
      const bytes = this.source.script(path);
      const entry = this.#entries.get(path);
      if (bytes) runtime.run(path, bytes, entry?.entities, entry && runsLater(entry));
    });
  }

  /** Scripts have changed while the world runs. */
  reload(changed: string[], removed: string[]): void {
    this.#later((runtime) => {
      const code: NewCode[] = [];
      for (const path of changed) {
        const bytecode = this.source.script(path);
        const entry = this.#entries.get(path);
        if (bytecode)
          code.push({
            path,
            bytecode,
            entities: entry?.entities ?? [],
            module: entry !== undefined && runsLater(entry),
          });
      }
      runtime.reload(code, removed);
    });
  }

  /** All startup scripts were started. */
  allTold(): void {
    this.#allTold = true;
    this.#doWork();
  }

  /** A script requires this module: true when it is being loaded, false when it is loaded or unknown. */
  want(path: string): boolean {
    const entry = this.#entries.get(path);
    if (!entry || this.source.script(path) !== undefined) return false;
    if (!this.#wanted.has(path)) {
      this.#wanted.add(path);
      this.source.request_scripts([path]);
    }
    return true;
  }

  /** The revision of the running scripts. */
  get revision(): string {
    return this.#manifest?.revision ?? '';
  }

  /** Every script of the list and whether it is a module. */
  *known(): Iterable<[path: string, module: boolean]> {
    for (const [path, entry] of this.#entries) if (!path.startsWith(BUILTIN)) yield [path, runsLater(entry)];
  }

  /** Revision and hash of a script, for its errors. */
  origin(path: string): string {
    const revision = this.#manifest?.revision.slice(0, 8);
    const hash = this.#entries.get(path)?.hash.slice('sha256:'.length).slice(0, 8);
    return revision === undefined ? '' : `revision ${revision}${hash ? `, script ${hash}` : ''}`;
  }

  event(name: string, args: WireValue[]): void {
    if (this.#started) return this.#guard(() => this.#runtime?.dispatchEvent(name, args));
    this.#waiting.push({ name, args });
    if (this.#waiting.length > EVENTS_WAITING_MAX) this.#waiting.shift();
  }

  /** Takes the queued events for the scripts of the next connection: the server sends each event once. */
  takeWaiting(): WaitingEvent[] {
    return this.#waiting.splice(0);
  }

  /** The result of a call. Delivered immediately: the calling script is already running. */
  result(id: number, outcome: InvokeOutcome): void {
    this.#guard(() => this.#runtime?.dispatchResult(this.host.callOf(id), outcome));
  }

  /** `index` is the selected row of a list. */
  click(widget: number, index?: number): void {
    this.#guard(() => this.#runtime?.uiEvent(widget, index === undefined ? 'Click' : 'Select', index));
  }

  input(event: InputEvent): void {
    this.#guard(() => this.#runtime?.inputEvent(event));
  }

  cast(cast: Cast): void {
    if (this.#started) this.#guard(() => this.#runtime?.cast(cast));
  }

  castRefused(reason: string): void {
    this.#guard(() => this.#runtime?.castRefused(reason));
  }

  player(here: boolean, number: number): void {
    this.#guard(() => this.#runtime?.playerEvent(here, number));
  }

  terrain(min: [number, number, number], max: [number, number, number]): void {
    if (this.#started) this.#guard(() => this.#runtime?.terrainEvent(min, max));
  }

  happened(kind: Happening, values: WireValue[]): void {
    if (this.#started) this.#guard(() => this.#runtime?.happened(kind, values));
  }

  tick(): void {
    this.#guard(() => this.#runtime?.tick(this.host.elapsed()));
    this.host.endFrame();
  }

  dispose(): void {
    this.#disposed = true;
    this.host.dispose();
    this.#runtime?.dispose();
    this.#runtime = null;
  }

  #is(turn: number): boolean {
    return !this.#disposed && turn === this.#turn;
  }

  /** Fetches in order, a few in parallel; falls back to the game's connection. */
  async #fetchAll(
    units: ScriptUnit[],
    lanes: number,
    turn: number,
    arrived?: (unit: ScriptUnit) => void,
  ): Promise<void> {
    const open = [...units];
    const lane = async (): Promise<void> => {
      for (let unit = open.shift(); unit !== undefined; unit = open.shift()) {
        const bytes = await this.fetchContent(unit.url);
        if (!this.#is(turn)) return;
        if (this.#takes(unit.path, bytes)) this.#keep(unit.path);
        else this.source.request_scripts([unit.path]);
        arrived?.(unit);
      }
    };
    await Promise.all(Array.from({ length: Math.min(lanes, units.length) }, lane));
  }

  /** Verifies downloaded content against the signed manifest; logs a mismatch, which means tampering. */
  #takes(unit: string, fetched: Uint8Array | null): boolean {
    if (!fetched) return false;
    const right = this.source.offer_script(unit, fetched);
    if (!right)
      this.host.log('warn', `refused ${unit}: its content is not what was signed. Asking the world for it instead.`);
    return right;
  }

  #keep(unit: string): void {
    for (const path of this.#bundles.get(unit) ?? [unit]) {
      const [entry, bytes] = [this.#entries.get(path), this.source.script(path)];
      if (!entry || !bytes) continue;
      void this.cache.put(entry.hash, bytes);
      if (entry.lazy) this.#provide(path);
    }
  }

  #provide(path: string): void {
    this.#wanted.delete(path);
    this.#later((runtime) => {
      const bytes = this.source.script(path);
      if (bytes) runtime.provide(path, bytes);
    });
  }

  async #load(): Promise<void> {
    if (this.#runtime || this.#loading) return;
    this.#loading = true;
    try {
      const runtime = await this.loadRuntime(this.host);
      if (this.#disposed) return runtime.dispose();
      this.#runtime = runtime;
      this.#doWork();
    } catch (error) {
      this.host.log('error', `scripts cannot run: ${describe(error)}`);
      this.#start();
    }
  }

  /** Runs in order as soon as the VM is loaded. */
  #later(work: (runtime: Runtime) => void): void {
    this.#work.push(work);
    this.#doWork();
  }

  #doWork(): void {
    const runtime = this.#runtime;
    if (!runtime) return;
    for (let work = this.#work.shift(); work !== undefined; work = this.#work.shift()) {
      const now = work;
      this.#guard(() => now(runtime));
    }
    if (this.#allTold) this.#start();
  }

  /** Events are queued until all scripts run, so that handlers are connected. */
  #start(): void {
    if (this.#started) return;
    this.#started = true;
    for (const { name, args } of this.#waiting.splice(0)) this.event(name, args);
    this.onstarted();
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.host.log('error', describe(error));
    }
  }
}

/** A script attached to an entity runs for it, whatever it returns. */
const runsLater = (entry: ScriptEntry): boolean => entry.module && entry.entities.length === 0;

async function fetchBytes(url: string): Promise<Uint8Array | null> {
  try {
    const response = await fetch(url);
    return response.ok ? new Uint8Array(await response.arrayBuffer()) : null;
  } catch {
    return null;
  }
}

const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error));
