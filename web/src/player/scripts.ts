// Client scripts of the game: offered from the cache or downloaded by the core, run when the server says so, fed with
// events. A game whose scripts fail stays playable; the error goes to the console.
import type { ClientCore } from './core';
import type { ScriptEntry, WireValue } from './events';
import type { InputEvent } from './input/input';
import type { ScriptHost } from './scripthost';
import type { ScriptCache } from './scriptcache';

/** The VM in the browser (luau/runtime.ts), as far as the player uses it. */
export interface Runtime {
  /** `entities`: what the script is attached to. */
  run(path: string, bytecode: Uint8Array, entities?: number[]): void;
  dispatchEvent(name: string, args: WireValue[]): void;
  dispatchResult(call: number, outcome: InvokeOutcome): void;
  /** A widget of a script was clicked, or a line of a list chosen. */
  uiEvent(id: number, event: string, index?: number): void;
  inputEvent(event: InputEvent): void;
  playerEvent(here: boolean, number: number): void;
  tick(dtSeconds: number): void;
  readonly memoryBytes: number;
  readonly lastTickMs: number;
  dispose(): void;
}

/** What came of a `Network.InvokeServer`. */
export type InvokeOutcome = { ok: true; values: WireValue[] } | { ok: false; error: string };

export type RuntimeLoader = (host: ScriptHost) => Promise<Runtime>;
/** The part of the core that scripts need. */
export type ScriptSource = Pick<ClientCore, 'script' | 'offer_script' | 'request_missing_scripts'>;
/** The part of the cache that is used here. */
export type Cache = Pick<ScriptCache, 'get' | 'put'>;

/** Events that wait for the scripts; more than this and the oldest are dropped. As many as a server keeps for one who is away. */
const EVENTS_WAITING_MAX = 2048;

export class ClientScripts {
  #entries = new Map<string, ScriptEntry>();
  #expected = new Set<string>();
  #toRun: string[] = [];
  #runtime: Runtime | null = null;
  #loading = false;
  #waiting: { name: string; args: WireValue[] }[] = [];
  #started = false;
  #disposed = false;

  constructor(
    private readonly source: ScriptSource,
    private readonly host: ScriptHost,
    private readonly cache: Cache,
    private readonly loadRuntime: RuntimeLoader,
    /** The scripts of the world run (or there are none, or they cannot run). */
    private readonly onstarted: () => void,
  ) {}

  get memoryBytes(): number {
    return this.#runtime?.memoryBytes ?? 0;
  }

  get lastTickMs(): number {
    return this.#runtime?.lastTickMs ?? 0;
  }

  /** What the world's scripts are: offers what earlier visits have left, then asks for the rest. */
  async manifest(entries: ScriptEntry[]): Promise<void> {
    const scripts = entries.filter((entry) => entry.run_context !== 'server');
    this.#entries = new Map(scripts.map((entry) => [entry.path, entry]));
    this.#expected = new Set(this.#entries.keys());
    if (scripts.length === 0) return this.#start();
    void this.#load();
    const kept = await Promise.all(scripts.map((entry) => this.cache.get(entry.hash)));
    if (this.#disposed) return;
    scripts.forEach((entry, i) => {
      const bytes = kept[i];
      if (bytes) this.source.offer_script(entry.path, bytes);
    });
    this.source.request_missing_scripts();
  }

  /** A script has arrived and matches its hash. */
  verified(path: string, hash: string): void {
    const bytes = this.source.script(path);
    if (bytes) void this.cache.put(hash, bytes);
  }

  /** The server says: run it now. */
  run(path: string): void {
    this.#toRun.push(path);
    this.#runWaiting();
  }

  event(name: string, args: WireValue[]): void {
    if (this.#started) return this.#guard(() => this.#runtime?.dispatchEvent(name, args));
    this.#waiting.push({ name, args });
    if (this.#waiting.length > EVENTS_WAITING_MAX) this.#waiting.shift();
  }

  /** The answer to a call. Does not wait for all scripts: the one that asked runs already. */
  result(id: number, outcome: InvokeOutcome): void {
    this.#guard(() => this.#runtime?.dispatchResult(this.host.callOf(id), outcome));
  }

  /** With an index: that line of a list. */
  click(widget: number, index?: number): void {
    this.#guard(() => this.#runtime?.uiEvent(widget, index === undefined ? 'Click' : 'Select', index));
  }

  input(event: InputEvent): void {
    this.#guard(() => this.#runtime?.inputEvent(event));
  }

  player(here: boolean, number: number): void {
    this.#guard(() => this.#runtime?.playerEvent(here, number));
  }

  tick(dtSeconds: number): void {
    this.#guard(() => this.#runtime?.tick(dtSeconds));
    this.host.endFrame();
  }

  dispose(): void {
    this.#disposed = true;
    this.host.dispose();
    this.#runtime?.dispose();
    this.#runtime = null;
  }

  async #load(): Promise<void> {
    if (this.#runtime || this.#loading) return;
    this.#loading = true;
    try {
      const runtime = await this.loadRuntime(this.host);
      if (this.#disposed) return runtime.dispose();
      this.#runtime = runtime;
      this.#runWaiting();
    } catch (error) {
      this.host.log('error', `scripts cannot run: ${describe(error)}`);
      this.#start();
    }
  }

  #runWaiting(): void {
    const runtime = this.#runtime;
    if (!runtime) return;
    for (let path = this.#toRun.shift(); path !== undefined; path = this.#toRun.shift()) {
      const [name, bytes] = [path, this.source.script(path)];
      this.#expected.delete(name);
      if (bytes) this.#guard(() => runtime.run(name, bytes, this.#entries.get(name)?.entities));
    }
    if (this.#expected.size === 0) this.#start();
  }

  /** Events wait until all scripts run, lest the first of them finds nobody listening. */
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

const describe = (error: unknown): string => (error instanceof Error ? error.message : String(error));
