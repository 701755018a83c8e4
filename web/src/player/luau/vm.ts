// The Luau VM (web/luau/shim.cpp) as a typed object: its memory, its stack, and the functions of the host that Luau may
// call. Independent of the game; values.ts and runtime.ts build on it.

/** Exports of shim.cpp. `L` is a Luau thread, `at` a stack index. */
interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  vm_new(soft: number, hard: number): number;
  vm_close(L: number): void;
  vm_push_slot(L: number): void;
  vm_arm(L: number, sliceMs: number, budgetMs: number): void;
  vm_disarm(L: number): number;
  vm_instance(L: number): number;
  vm_slow_instance(L: number): number;
  vm_take_hoarder(L: number): number;
  vm_trace(L: number): number;
  vm_used(L: number): number;
  vm_collect(L: number): void;
  vm_push_host(L: number, name: number, id: number): void;
  vm_load(L: number, name: number, code: number, size: number, env: number): number;
  vm_pcall(L: number, args: number, results: number): number;
  vm_set_globals(L: number): void;
  vm_safe_env(L: number, at: number): void;
  vm_freeze(L: number, at: number): void;
  vm_set_vector_meta(L: number): void;
  vm_length(): number;
  vm_vector(): number;
  vm_alloc(size: number): number;
  vm_free(block: number): void;
  vm_top(L: number): number;
  vm_set_top(L: number, top: number): void;
  vm_check_stack(L: number, slots: number): number;
  vm_push_value(L: number, at: number): void;
  vm_type(L: number, at: number): number;
  vm_to_number(L: number, at: number): number;
  vm_to_boolean(L: number, at: number): number;
  vm_to_string(L: number, at: number): number;
  vm_to_vector(L: number, at: number): number;
  vm_push_nil(L: number): void;
  vm_push_boolean(L: number, value: number): void;
  vm_push_number(L: number, value: number): void;
  vm_push_string(L: number, text: number, size: number): void;
  vm_push_vector(L: number, x: number, y: number, z: number): void;
  vm_push_buffer(L: number, size: number): number;
  vm_to_buffer(L: number, at: number): number;
  vm_push_table(L: number, items: number, keys: number): void;
  vm_raw_length(L: number, at: number): number;
  vm_raw_get_index(L: number, at: number, index: number): number;
  vm_raw_set_index(L: number, at: number, index: number): void;
  vm_raw_get(L: number, at: number): number;
  vm_raw_set(L: number, at: number): void;
  vm_next(L: number, at: number): number;
  vm_metatable_is(L: number, at: number, reference: number): number;
  vm_ref(L: number, at: number): number;
  vm_push_ref(L: number, reference: number): void;
}

/** Luau's type numbers (lua.h). */
export const Type = { nil: 0, boolean: 1, number: 3, vector: 5, string: 6, table: 7, function: 8, buffer: 11 } as const;

/** A function for Luau: arguments are at 1…count of `vm`'s stack; returns how many results it pushed. */
export type HostFunction = (vm: LuauVm, count: number) => number;

/** Why a call into the VM was stopped. */
export type StopReason = 'time' | 'memory';

export interface Limits {
  memoryBytes: number;
  sliceMs: number;
  /** After this much time in one call the scheduler defers the rest to the next tick. */
  budgetMs: number;
}

/** How a call into the VM ended; `slow` is an instance that took several slices of time without being stopped, or 0. */
export type Outcome =
  | { ok: true; slow: number }
  | { ok: false; error: string }
  | { ok: false; stopped: StopReason; instance: number; trace: string };

const HOST_ERROR = -1;
const decoder = new TextDecoder();
const encoder = new TextEncoder();

export class LuauVm {
  readonly #exports: Exports;
  readonly #limits: Limits;
  readonly #functions: HostFunction[] = [];
  readonly #main: number;
  /** The thread whose stack the methods below work on. */
  #thread: number;
  #bytes = new Uint8Array(0);
  #lengthAt = 0;
  #vectorAt = 0;

  private constructor(exports: Exports, limits: Limits) {
    this.#exports = exports;
    this.#limits = limits;
    exports._initialize();
    this.#lengthAt = exports.vm_length();
    this.#vectorAt = exports.vm_vector();
    // The allocator refuses at twice the cap: stopping at a safe point comes first.
    this.#main = exports.vm_new(limits.memoryBytes, limits.memoryBytes * 2);
    if (!this.#main) throw new Error('no memory for the Luau VM');
    this.#thread = this.#main;
  }

  static async create(module: WebAssembly.Module, limits: Limits): Promise<LuauVm> {
    const box: { vm?: LuauVm } = {};
    const instance = await WebAssembly.instantiate(module, {
      host: {
        now: () => performance.now(),
        call: (thread: number, id: number, count: number) => box.vm?.hostCall(thread, id, count) ?? HOST_ERROR,
      },
      wasi_snapshot_preview1: noSystem,
    });
    box.vm = new LuauVm(instance.exports as unknown as Exports, limits);
    return box.vm;
  }

  close(): void {
    this.#exports.vm_close(this.#main);
  }

  get usedBytes(): number {
    return this.#exports.vm_used(this.#main);
  }

  /** The memory category that used most memory when it ran out; null when there is none. */
  takeHoarder(): number | null {
    const category = this.#exports.vm_take_hoarder(this.#main);
    return category < 0 ? null : category;
  }

  collect(): void {
    this.#exports.vm_collect(this.#main);
  }

  /** Calls the function below `args` arguments on the stack, under the limits; results stay on the stack. */
  call(args: number, results: number): Outcome {
    const { sliceMs, budgetMs } = this.#limits;
    this.#exports.vm_arm(this.#thread, sliceMs, budgetMs);
    const status = this.#exports.vm_pcall(this.#thread, args, results);
    const reason = this.#exports.vm_disarm(this.#thread);
    if (reason !== 0) {
      const trace = this.#text(this.#exports.vm_trace(this.#thread));
      const instance = this.#exports.vm_instance(this.#thread);
      return { ok: false, stopped: reason === 1 ? 'time' : 'memory', instance, trace };
    }
    if (status === 0) return { ok: true, slow: this.#exports.vm_slow_instance(this.#thread) };
    const error = this.string(-1) ?? 'error without text';
    this.pop(1);
    return { ok: false, error };
  }

  /** Pushes the function that bytecode defines, or returns why it cannot be loaded. `env` 0 means the globals. */
  load(name: string, bytecode: Uint8Array, env: number): string | null {
    const chunk = this.#copy(encoder.encode(`=${name}\0`));
    const code = this.#copy(bytecode);
    const status = this.#exports.vm_load(this.#thread, chunk, code, bytecode.length, env);
    this.#exports.vm_free(chunk);
    this.#exports.vm_free(code);
    if (status === 0) return null;
    const error = this.string(-1) ?? 'the script cannot be loaded';
    this.pop(1);
    return error;
  }

  // --- stack -------------------------------------------------------------------------------------------------------

  get top(): number {
    return this.#exports.vm_top(this.#thread);
  }

  setTop(top: number): void {
    this.#exports.vm_set_top(this.#thread, top);
  }

  pop(count: number): void {
    this.setTop(this.top - count);
  }

  /** Grows the stack; false at its limit. */
  reserve(slots: number): boolean {
    return this.#exports.vm_check_stack(this.#thread, slots) !== 0;
  }

  type(at: number): number {
    return this.#exports.vm_type(this.#thread, at);
  }

  number(at: number): number {
    return this.#exports.vm_to_number(this.#thread, at);
  }

  boolean(at: number): boolean {
    return this.#exports.vm_to_boolean(this.#thread, at) !== 0;
  }

  /** A string as text; null when the value is something else. */
  string(at: number): string | null {
    const text = this.#exports.vm_to_string(this.#thread, at);
    return text === 0 ? null : this.#text(text);
  }

  stringLength(at: number): number {
    this.#exports.vm_to_string(this.#thread, at);
    return this.#length();
  }

  vector(at: number): [number, number, number] | null {
    if (!this.#exports.vm_to_vector(this.#thread, at)) return null;
    const v = new Float64Array(this.#exports.memory.buffer, this.#vectorAt, 3);
    return [v[0]!, v[1]!, v[2]!];
  }

  pushNil(): void {
    this.#exports.vm_push_nil(this.#thread);
  }

  pushBoolean(value: boolean): void {
    this.#exports.vm_push_boolean(this.#thread, value ? 1 : 0);
  }

  pushNumber(value: number): void {
    this.#exports.vm_push_number(this.#thread, value);
  }

  pushString(text: string): void {
    const bytes = encoder.encode(text);
    const at = this.#copy(bytes);
    this.#exports.vm_push_string(this.#thread, at, bytes.length);
    this.#exports.vm_free(at);
  }

  pushVector(x: number, y: number, z: number): void {
    this.#exports.vm_push_vector(this.#thread, x, y, z);
  }

  /** A buffer's size in bytes; null when the value is something else. */
  bufferLength(at: number): number | null {
    return this.type(at) === Type.buffer ? (this.#exports.vm_to_buffer(this.#thread, at), this.#length()) : null;
  }

  /** A copy of a buffer's bytes. */
  buffer(at: number): Uint8Array {
    const from = this.#exports.vm_to_buffer(this.#thread, at);
    return this.#view().slice(from, from + this.#length());
  }

  pushBuffer(bytes: Uint8Array): void {
    const at = this.#exports.vm_push_buffer(this.#thread, bytes.length);
    this.#view().set(bytes, at);
  }

  pushTable(items: number, keys: number): void {
    this.#exports.vm_push_table(this.#thread, items, keys);
  }

  pushCopy(at: number): void {
    this.#exports.vm_push_value(this.#thread, at);
  }

  /** A function of the host; an exception in it becomes a Luau error. */
  pushHost(name: string, fn: HostFunction): void {
    // Luau keeps the name's address: it is never freed.
    const at = this.#copy(encoder.encode(`${name}\0`));
    this.#exports.vm_push_host(this.#thread, at, this.#functions.push(fn) - 1);
  }

  pushSlot(): void {
    this.#exports.vm_push_slot(this.#thread);
  }

  // --- tables ------------------------------------------------------------------------------------------------------

  rawLength(at: number): number {
    return this.#exports.vm_raw_length(this.#thread, at);
  }

  /** Pushes `table[index]`. */
  rawGetIndex(at: number, index: number): void {
    this.#exports.vm_raw_get_index(this.#thread, at, index);
  }

  /** Pops a value into `table[index]`. */
  rawSetIndex(at: number, index: number): void {
    this.#exports.vm_raw_set_index(this.#thread, at, index);
  }

  /** Pushes `table[key]`. `at` counts from the bottom. */
  rawGetField(at: number, key: string): void {
    this.pushString(key);
    this.#exports.vm_raw_get(this.#thread, at);
  }

  /** Pops a key and a value (on top) into the table. `at` counts from the bottom. */
  rawSet(at: number): void {
    this.#exports.vm_raw_set(this.#thread, at);
  }

  /** Pops a key, pushes the next key and value; false at the end. */
  next(at: number): boolean {
    return this.#exports.vm_next(this.#thread, at) !== 0;
  }

  /** 'none', 'other', or 'same' as the table behind the reference. */
  metatable(at: number, reference: number): 'none' | 'other' | 'same' {
    const answer = this.#exports.vm_metatable_is(this.#thread, at, reference);
    return answer === 0 ? 'none' : answer === 1 ? 'other' : 'same';
  }

  freeze(at: number): void {
    this.#exports.vm_freeze(this.#thread, at);
  }

  safeEnvironment(at: number): void {
    this.#exports.vm_safe_env(this.#thread, at);
  }

  /** Pops a table: from now on the globals. */
  setGlobals(): void {
    this.#exports.vm_set_globals(this.#thread);
  }

  /** Pops a table: from now on the metatable of vectors. */
  setVectorMetatable(): void {
    this.#exports.vm_set_vector_meta(this.#thread);
  }

  /** Keeps a value alive and returns a reference to it. */
  reference(at: number): number {
    return this.#exports.vm_ref(this.#thread, at);
  }

  pushReference(reference: number): void {
    this.#exports.vm_push_ref(this.#thread, reference);
  }

  // --- inside ------------------------------------------------------------------------------------------------------

  private hostCall(thread: number, id: number, count: number): number {
    const outer = this.#thread;
    this.#thread = thread;
    try {
      return this.#functions[id]!(this, count);
    } catch (error) {
      this.setTop(count);
      this.pushString(error instanceof Error ? error.message : String(error));
      return HOST_ERROR;
    } finally {
      this.#thread = outer;
    }
  }

  /** The VM's memory; growing it detaches the old view. */
  #view(): Uint8Array {
    if (this.#bytes.length === 0) this.#bytes = new Uint8Array(this.#exports.memory.buffer);
    return this.#bytes;
  }

  #copy(bytes: Uint8Array): number {
    const at = this.#exports.vm_alloc(Math.max(bytes.length, 1));
    if (at === 0) throw new Error('the Luau VM is out of memory');
    this.#view().set(bytes, at);
    return at;
  }

  #length(): number {
    return new DataView(this.#exports.memory.buffer).getInt32(this.#lengthAt, true);
  }

  #text(at: number): string {
    return decoder.decode(this.#view().subarray(at, at + this.#length()));
  }
}

/** Imports of Luau's C library; scripts cannot reach them. */
const noSystem = {
  fd_write: () => 8,
  fd_close: () => 8,
  fd_seek: () => 8,
  fd_fdstat_get: () => 8,
  clock_time_get: () => 8,
  proc_exit: (code: number) => {
    throw new Error(`the Luau VM ended with code ${code}`);
  },
  random_get: () => 8,
  environ_get: () => 8,
  environ_sizes_get: () => 8,
};
