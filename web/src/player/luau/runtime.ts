// Runs the game's client scripts: the builtin Luau first, then the server's scripts, each with its own globals, all
// under one memory cap and a time slice per handler.
import type { Cast, WireValue } from '../core/events';
import type { Happening, NewCode } from '../scripts/scripts';
import type { InputEvent } from '../input/input';
import { type ClientHost, nativeFunctions, type Natives, SPELLS } from './host';
import { type Entities, pushValue } from './values';
import { LuauVm, type Outcome } from './vm';

export type { ClientHost } from './host';

const LIMITS = { memoryBytes: 32 * 1024 * 1024, sliceMs: 50, budgetMs: 100 };
const OFFENCES_MAX = 5;
/** A script that still holds more than this share of memory after an out-of-memory stop is disabled. */
const HOARD_SHARE = 0.75;
const STOPS_PER_CALL_MAX = 16;
/** Consecutive slow calls of an instance that count as a stop; a tick without one ends the sequence. */
const SLOW_CALLS_MAX = 10;
const BUILTIN = '@builtin/';
/** Modules run when a script requires them. */
const MODULES = 'ReplicatedStorage/';

const ENTRIES = [
  'tick',
  'drain',
  'stopped',
  'end_category',
  'run',
  'reload',
  'arrived',
  'event',
  'result',
  'ui',
  'input',
  'player',
  'cast',
  'cast_refused',
  'terrain',
  'happened',
] as const;
type EntryName = (typeof ENTRIES)[number];

/** The loaded script of a path. */
interface Code {
  bytecode: Uint8Array;
  module: boolean;
}

export class ScriptRuntime {
  readonly #vm: LuauVm;
  readonly #host: ClientHost;
  readonly #scripts = new Map<string, Code>();
  readonly #entities: Entities = { meta: 0, make: 0 };
  readonly #engine: number;
  #entry: Record<EntryName, number> | null = null;
  #members = 0;
  /** Slow calls by instance, since the last tick without one. */
  readonly #slowCalls = new Map<number, number>();
  #broken = false;
  lastTickMs = 0;

  private constructor(vm: LuauVm, host: ClientHost) {
    this.#vm = vm;
    this.#host = host;
    this.#engine = this.#makeEngine({
      host,
      entities: this.#entities,
      bytecode: (path) => this.#scripts.get(path)?.bytecode,
      scripts: () => {
        const all = new Map(host.knownScripts());
        for (const [path, { module }] of this.#scripts) all.set(path, module);
        return all;
      },
      scriptCount: () => this.#scripts.size,
    });
  }

  static async load(wasmUrl: string, host: ClientHost): Promise<ScriptRuntime> {
    const response = await fetch(wasmUrl);
    if (!response.ok) throw new Error(`the Luau VM could not be loaded (${response.status})`);
    return ScriptRuntime.create(await WebAssembly.compile(await response.arrayBuffer()), host);
  }

  static async create(module: WebAssembly.Module, host: ClientHost): Promise<ScriptRuntime> {
    return new ScriptRuntime(await LuauVm.create(module, LIMITS), host);
  }

  get memoryBytes(): number {
    return this.#broken ? 0 : this.#vm.usedBytes;
  }

  /**
   * Runs a script that was verified against its hash; the engine's own (`@builtin/…`) come first, in order. A module runs
   * when something requires it.
   */
  run(path: string, bytecode: Uint8Array, entities: number[] = [], module = runsLater(path)): void {
    if (path.startsWith(BUILTIN)) return this.#runBuiltin(path, bytecode);
    if (!this.#entry) throw new Error(`${path} came before the engine's own scripts`);
    this.#scripts.set(path, { bytecode, module });
    if (module) return;
    for (const entity of entities.length > 0 ? entities : [0]) {
      this.#enter('run', (vm) => {
        vm.pushString(path);
        vm.pushNumber(entity);
        return 2;
      });
    }
  }

  /** Replaces code: running instances stop and restart with their state. */
  reload(changed: NewCode[], removed: string[]): void {
    const game = changed.filter(({ path }) => !path.startsWith(BUILTIN));
    for (const { path, bytecode, module } of game) this.#scripts.set(path, { bytecode, module });
    for (const path of removed) this.#scripts.delete(path);
    const starts = game
      .filter(({ module }) => !module)
      .flatMap(({ path, entities }) => (entities.length > 0 ? entities : [0]).map((id) => [path, id] as const));
    this.#enter('reload', (vm) => {
      if (!vm.reserve(16)) throw new Error('the script VM has no room for a reload');
      this.#pushTable(
        [...game.map(({ path }) => path), ...removed],
        (path) => vm.pushString(path),
        () => vm.pushBoolean(true),
      );
      this.#pushTable(
        starts,
        (_, i) => vm.pushNumber(i + 1),
        ([path]) => vm.pushString(path),
      );
      this.#pushTable(
        starts,
        (_, i) => vm.pushNumber(i + 1),
        ([, id]) => vm.pushNumber(id),
      );
      vm.pushBoolean(false);
      return 4;
    });
  }

  /** A late module has arrived; waiting scripts resume. */
  provide(path: string, bytecode: Uint8Array): void {
    this.#scripts.set(path, { bytecode, module: true });
    this.#enter('arrived', (vm) => {
      vm.pushString(path);
      return 1;
    });
  }

  /** An event from the server. */
  dispatchEvent(name: string, args: WireValue[]): void {
    this.#enter('event', (vm) => {
      if (!vm.reserve(args.length + 8)) throw new Error(`event ${name} has too many arguments`);
      vm.pushString(name);
      for (const arg of args) pushValue(vm, arg, this.#entities);
      return args.length + 1;
    });
  }

  /** The answer to a call of `host.invokeServer`. */
  dispatchResult(call: number, outcome: { ok: true; values: WireValue[] } | { ok: false; error: string }): void {
    const values = outcome.ok ? outcome.values : [outcome.error];
    this.#enter('result', (vm) => {
      if (!vm.reserve(values.length + 8)) throw new Error('an answer has too many values');
      vm.pushNumber(call);
      vm.pushBoolean(outcome.ok);
      for (const value of values) pushValue(vm, value, this.#entities);
      return values.length + 2;
    });
  }

  /** The player used a script's widget. */
  uiEvent(id: number, event: string, index = 0): void {
    this.#enter('ui', (vm) => {
      vm.pushNumber(id);
      vm.pushString(event);
      vm.pushNumber(index);
      return 3;
    });
  }

  /** A key or button press or release, or a tap. */
  inputEvent({ down, key, kind, x, y }: InputEvent): void {
    this.#enter('input', (vm) => {
      vm.pushBoolean(down);
      vm.pushString(key);
      vm.pushString(kind);
      vm.pushNumber(x);
      vm.pushNumber(y);
      return 5;
    });
  }

  /** A player joined or left the world. */
  playerEvent(here: boolean, number: number): void {
    this.#enter('player', (vm) => {
      vm.pushBoolean(here);
      vm.pushNumber(number);
      return 2;
    });
  }

  /** A spell was cast: runs its code with the server's seed. */
  cast(cast: Cast): void {
    this.#enter('cast', (vm) => {
      if (!vm.reserve(32)) throw new Error('the script VM has no room for a spell');
      vm.pushString(`${SPELLS}${cast.spellId}/spell.luau`);
      vm.pushString(cast.spellId);
      vm.pushNumber(cast.seed);
      // 0: a player who is not in the world.
      pushValue(vm, cast.caster === 0 ? null : { $e: cast.caster }, this.#entities);
      vm.pushVector(...cast.target);
      pushValue(vm, cast.params[0] ?? null, this.#entities);
      pushValue(vm, cast.answers, this.#entities);
      vm.pushNumber(cast.draws);
      return 8;
    });
  }

  /** The server refused a cast of this player. */
  castRefused(reason: string): void {
    this.#enter('cast_refused', (vm) => {
      vm.pushString(reason);
      return 1;
    });
  }

  /** The terrain changed within a box. */
  terrainEvent(min: [number, number, number], max: [number, number, number]): void {
    this.#enter('terrain', (vm) => {
      vm.pushVector(...min);
      vm.pushVector(...max);
      return 2;
    });
  }

  /** A world event: a shot, an NPC that changed its state. */
  happened(kind: Happening, values: WireValue[]): void {
    this.#enter('happened', (vm) => {
      vm.pushString(kind);
      for (const value of values) pushValue(vm, value, this.#entities);
      return values.length + 1;
    });
  }

  /** The names of the API, such as `World.Find` or `print`; tests compare them with the definition. */
  members(): string[] {
    const vm = this.#vm;
    const bottom = vm.top;
    vm.pushReference(this.#members);
    const outcome = vm.call(0, 1);
    const names: string[] = [];
    if (outcome.ok) {
      const list = vm.top;
      for (let at = 1; at <= vm.rawLength(list); at++) {
        vm.rawGetIndex(list, at);
        names.push(vm.string(-1) ?? '');
        vm.pop(1);
      }
    }
    vm.setTop(bottom);
    return names;
  }

  tick(dtSeconds: number): void {
    const began = performance.now();
    this.#enter('tick', (vm) => {
      vm.pushNumber(dtSeconds);
      return 1;
    });
    this.lastTickMs = performance.now() - began;
  }

  dispose(): void {
    if (this.#broken) return;
    this.#broken = true;
    this.#vm.close();
  }

  /** The table `engine` that the built-in scripts share. */
  #makeEngine(natives: Natives): number {
    const vm = this.#vm;
    vm.pushTable(0, 8);
    const engine = vm.top;
    vm.pushString('host');
    vm.pushTable(0, 64);
    const table = vm.top;
    for (const [name, fn] of Object.entries(nativeFunctions(natives))) {
      vm.pushString(name);
      vm.pushHost(name, fn);
      vm.rawSet(table);
    }
    vm.rawSet(engine);
    vm.pushString('slot');
    vm.pushSlot();
    vm.rawSet(engine);
    vm.pushString('api');
    vm.pushTable(0, 64);
    vm.rawSet(engine);
    vm.pushString('seed');
    vm.pushNumber(1);
    vm.rawSet(engine);
    const reference = vm.reference(engine);
    vm.pop(1);
    return reference;
  }

  #pushTable<T>(items: T[], key: (item: T, index: number) => void, value: (item: T) => void): void {
    this.#vm.pushTable(0, items.length);
    const table = this.#vm.top;
    items.forEach((item, index) => {
      key(item, index);
      value(item);
      this.#vm.rawSet(table);
    });
  }

  #runBuiltin(path: string, bytecode: Uint8Array): void {
    if (this.#entry) throw new Error(`${path} came after the engine's own scripts were complete`);
    const vm = this.#vm;
    const problem = vm.load(path, bytecode, 0);
    if (problem !== null) throw new Error(problem);
    vm.pushReference(this.#engine);
    const outcome = vm.call(1, 0);
    if (!outcome.ok) throw new Error(`${path}: ${'error' in outcome ? outcome.error : outcome.stopped}`);
    this.#takeEntry();
  }

  /** The last builtin script sets `engine.entry`, the functions called from now on. Then the globals are frozen. */
  #takeEntry(): void {
    const vm = this.#vm;
    vm.pushReference(this.#engine);
    const engine = vm.top;
    vm.rawGetField(engine, 'entry');
    const entry = vm.top;
    if (vm.type(entry) !== 0) {
      const field = (name: string): number => {
        vm.rawGetField(entry, name);
        const reference = vm.reference(-1);
        vm.pop(1);
        return reference;
      };
      this.#entities.meta = field('entity_meta');
      this.#entities.make = field('make_entity');
      this.#members = field('members');
      this.#entry = Object.fromEntries(ENTRIES.map((name) => [name, field(name)])) as Record<EntryName, number>;
      vm.rawGetField(engine, 'api');
      vm.setGlobals();
    }
    vm.setTop(engine - 1);
  }

  /** Calls an entry function; after a stop it resumes the remaining work. */
  #enter(name: EntryName, pushArgs: (vm: LuauVm) => number): void {
    if (this.#broken || !this.#entry) return;
    const vm = this.#vm;
    const bottom = vm.top;
    try {
      vm.pushReference(this.#entry[name]);
      let outcome = vm.call(pushArgs(vm), 0);
      for (let stops = 0; stops < STOPS_PER_CALL_MAX; stops++) {
        const hoarder = vm.takeHoarder();
        if (hoarder !== null) this.#endHoarder(hoarder);
        if (!outcome.ok) this.#recover(outcome);
        else if (hoarder === null) {
          this.#countSlow(name, outcome.slow);
          break;
        }
        vm.pushReference(this.#entry.drain);
        outcome = vm.call(0, 0);
      }
      vm.setTop(bottom);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) {
        vm.setTop(bottom);
        throw error;
      }
      // A trap leaves the VM in an unknown state: the game continues without scripts.
      this.#broken = true;
      this.#host.log('error', `the script VM crashed and was stopped: ${error.message}`);
    }
  }

  /** Disables the script that used most memory when it ran out. */
  #endHoarder(category: number): void {
    const vm = this.#vm;
    vm.pushReference(this.#entry!.end_category);
    vm.pushNumber(category);
    if (!vm.call(1, 2).ok) return;
    const [path, count] = [vm.string(-2) ?? '', vm.number(-1)];
    vm.pop(2);
    vm.collect();
    if (count > 0)
      this.#host.log('error', `${path}: disabled: it holds most of the ${LIMITS.memoryBytes >> 20} MiB of scripts`);
  }

  /** Stops an instance that was slow too often, although no single call took long enough to be stopped. */
  #countSlow(name: EntryName, instance: number): void {
    if (instance === 0) {
      if (name === 'tick') this.#slowCalls.clear();
      return;
    }
    const calls = (this.#slowCalls.get(instance) ?? 0) + 1;
    this.#slowCalls.set(instance, calls);
    if (calls < SLOW_CALLS_MAX) return;
    this.#slowCalls.delete(instance);
    this.#recover({ ok: false, stopped: 'time', instance, trace: '' });
  }

  #recover(outcome: Extract<Outcome, { ok: false }>): void {
    const vm = this.#vm;
    const instance = 'stopped' in outcome ? outcome.instance : 0;
    if (vm.usedBytes > LIMITS.memoryBytes / 2) vm.collect();
    // A script that leaves only a few bytes free would starve the others.
    const hoards =
      'stopped' in outcome && outcome.stopped === 'memory' && vm.usedBytes > LIMITS.memoryBytes * HOARD_SHARE;
    vm.pushReference(this.#entry!.stopped);
    vm.pushNumber(instance);
    vm.pushNumber(hoards ? 1 : OFFENCES_MAX);
    const verdict = vm.call(2, 2);
    const path = verdict.ok ? (vm.string(-2) ?? '') : '';
    const disabled = verdict.ok && vm.boolean(-1);
    if (verdict.ok) vm.pop(2);
    this.#host.log('error', `${path}: ${describe(outcome)}`);
    if (disabled) this.#host.log('error', `${path}: disabled after repeated offences`);
    if (hoards) vm.collect();
  }
}

/** The thread that runs required modules and cast spells. */
function runsLater(path: string): boolean {
  return path.startsWith(MODULES) || path.startsWith(SPELLS);
}

function describe(outcome: Extract<Outcome, { ok: false }>): string {
  if (!('stopped' in outcome)) return outcome.error;
  const why =
    outcome.stopped === 'time'
      ? `stopped after ${LIMITS.sliceMs} ms without a pause; use task.wait in long loops`
      : `stopped because the scripts use more than ${LIMITS.memoryBytes >> 20} MiB`;
  const frames = outcome.trace
    .split('\n')
    .filter((line) => line && !line.startsWith('@builtin') && !line.startsWith('[C]'));
  return [why, ...frames].join('\n');
}
