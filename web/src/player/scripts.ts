// Client scripts of the game: fetched by the core (or offered from the cache), run in the order of the manifest,
// fed with events. A game whose scripts fail stays playable; the error goes to the console.
import type { ClientCore } from './core';
import type { ScriptEntry, WireValue } from './events';
import type { ScriptHost } from './scripthost';
import { ScriptCache } from './scriptcache';

/** The VM in the browser (luau/runtime.ts), as far as the player uses it. */
export interface Runtime {
  run(path: string, bytecode: Uint8Array): void;
  dispatchEvent(name: string, args: WireValue[]): void;
  tick(dtSeconds: number): void;
  /** A widget of a script was clicked. */
  uiEvent?(id: number, event: string): void;
  readonly memoryBytes: number;
  readonly lastTickMs: number;
  dispose(): void;
}

export type RuntimeLoader = (host: ScriptHost) => Promise<Runtime>;

/** Events that wait for the scripts; more than this and the oldest are dropped. */
const EVENTS_WAITING_MAX = 256;

export class ClientScripts {
  #cache = new ScriptCache();
  #manifest: ScriptEntry[] = [];
  #ready = new Map<string, Uint8Array>();
  #next = 0;
  #runtime: Runtime | null = null;
  #loading = false;
  #waiting: { name: string; args: WireValue[] }[] = [];
  #disposed = false;

  constructor(
    private readonly host: ScriptHost,
    private readonly loadRuntime: RuntimeLoader,
    /** All scripts of the manifest have been started (or there are none). */
    private readonly onstarted: () => void,
  ) {}

  get memoryBytes(): number {
    return this.#runtime?.memoryBytes ?? 0;
  }

  get lastTickMs(): number {
    return this.#runtime?.lastTickMs ?? 0;
  }

  manifest(scripts: ScriptEntry[]): void {
    this.#manifest = scripts;
    if (scripts.length === 0) this.onstarted();
    else void this.#load();
  }

  /** The core asks whether this page still has a script from an earlier visit. */
  async wanted(core: ClientCore, path: string, hash: string): Promise<void> {
    const bytes = await this.#cache.get(hash);
    if (!this.#disposed) core.offer_script?.(path, bytes ?? new Uint8Array());
  }

  /** Verified bytecode has arrived. */
  ready(path: string, bytes: Uint8Array): void {
    this.#ready.set(path, bytes);
    const hash = this.#manifest.find((entry) => entry.path === path)?.hash;
    if (hash) void this.#cache.put(hash, bytes.slice());
    this.#runReady();
  }

  event(name: string, args: WireValue[]): void {
    if (this.#runtime && this.#allStarted) return this.#guard(() => this.#runtime?.dispatchEvent(name, args));
    this.#waiting.push({ name, args });
    if (this.#waiting.length > EVENTS_WAITING_MAX) this.#waiting.shift();
  }

  click(widget: number): void {
    this.#guard(() => this.#runtime?.uiEvent?.(widget, 'Click'));
  }

  tick(dtSeconds: number): void {
    if (this.#runtime && this.#next > 0) this.#guard(() => this.#runtime?.tick(dtSeconds));
  }

  dispose(): void {
    this.#disposed = true;
    this.#runtime?.dispose();
    this.#runtime = null;
  }

  get #allStarted(): boolean {
    return this.#next >= this.#manifest.length;
  }

  async #load(): Promise<void> {
    if (this.#runtime || this.#loading) return;
    this.#loading = true;
    try {
      const runtime = await this.loadRuntime(this.host);
      if (this.#disposed) return runtime.dispose();
      this.#runtime = runtime;
      this.#runReady();
    } catch (error) {
      this.host.log('error', `scripts cannot run: ${error instanceof Error ? error.message : String(error)}`);
      this.onstarted();
    }
  }

  /** A script runs only when all before it in the manifest have: the engine's own part comes first. */
  #runReady(): void {
    if (!this.#runtime || this.#allStarted) return;
    for (let entry = this.#manifest[this.#next]; entry; entry = this.#manifest[this.#next]) {
      const bytes = this.#ready.get(entry.path);
      if (!bytes) return;
      const { path } = entry;
      this.#ready.delete(path);
      this.#next++;
      this.#guard(() => this.#runtime?.run(path, bytes));
    }
    const events = this.#waiting.splice(0);
    for (const { name, args } of events) this.event(name, args);
    this.onstarted();
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.host.log('error', error instanceof Error ? error.message : String(error));
    }
  }
}
