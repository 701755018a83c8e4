// Values between Luau and the wire: plain JSON, with {"$v":[x,y,z]} for vectors, {"$e":id} for entities and {"$b":"…"} in
// base64 for buffers (the JSON format of crates/protocol/src/value.rs). The server's limits apply here too, so that a script fails early.
import type { WireValue } from '../core/events';
import { type LuauVm, Type } from './vm';

const DEPTH_MAX = 32;
const NODES_MAX = 4096;
const STRING_BYTES_MAX = 16 * 1024;

/** Representation of entities in Luau. */
export interface Entities {
  /** Reference to the metatable that all handles share. */
  meta: number;
  /** Reference to the function that creates a handle from an id. */
  make: number;
}

/** Reads the arguments `first`…`last` of a call. */
export function readValues(vm: LuauVm, first: number, last: number, entities: Entities): WireValue[] {
  const reader = new Reader(vm, entities);
  const values: WireValue[] = [];
  for (let at = first; at <= last; at++) values.push(reader.read(at, DEPTH_MAX));
  return values;
}

class Reader {
  #nodes = 0;

  constructor(
    private readonly vm: LuauVm,
    private readonly entities: Entities,
  ) {}

  read(at: number, depth: number): WireValue {
    if (++this.#nodes > NODES_MAX) throw new Error(`value has more than ${NODES_MAX} parts`);
    const { vm } = this;
    switch (vm.type(at)) {
      case Type.nil:
        return null;
      case Type.boolean:
        return vm.boolean(at);
      case Type.number:
        return finiteOrNull(vm.number(at));
      case Type.string:
        return this.#string(at);
      case Type.vector: {
        const vector = vm.vector(at) ?? [0, 0, 0];
        if (!vector.every(Number.isFinite)) throw new Error('a vector has a component that is not finite');
        return { $v: vector };
      }
      case Type.buffer:
        return this.#buffer(at);
      case Type.table:
        return this.#table(at, depth);
      default:
        throw new Error('functions, threads and userdata cannot be sent');
    }
  }

  #string(at: number): string {
    if (this.vm.stringLength(at) > STRING_BYTES_MAX)
      throw new Error(`a string is longer than ${STRING_BYTES_MAX} bytes`);
    return this.vm.string(at) ?? '';
  }

  #buffer(at: number): WireValue {
    if ((this.vm.bufferLength(at) ?? 0) > STRING_BYTES_MAX)
      throw new Error(`a buffer is longer than ${STRING_BYTES_MAX} bytes`);
    // In chunks: the number of call arguments is limited.
    const bytes = this.vm.buffer(at);
    let text = '';
    for (let from = 0; from < bytes.length; from += 4096)
      text += String.fromCharCode(...bytes.subarray(from, from + 4096));
    return { $b: btoa(text) };
  }

  #table(at: number, depth: number): WireValue {
    const { vm } = this;
    if (depth === 0) throw new Error(`value is nested deeper than ${DEPTH_MAX} levels`);
    if (!vm.reserve(4)) throw new Error('value is nested too deeply');
    const meta = vm.metatable(at, this.entities.meta);
    if (meta === 'same') {
      vm.rawGetField(at, 'Id');
      const id = vm.number(-1);
      vm.pop(1);
      return { $e: id };
    }
    if (meta === 'other') throw new Error('a table with a metatable cannot be sent');
    return vm.rawLength(at) > 0 ? this.#list(at, depth) : this.#map(at, depth);
  }

  #list(at: number, depth: number): WireValue {
    const { vm } = this;
    const length = vm.rawLength(at);
    if (length > NODES_MAX) throw new Error(`value has more than ${NODES_MAX} parts`);
    let keys = 0;
    vm.pushNil();
    while (vm.next(at)) {
      vm.pop(1);
      if (++keys > length || vm.type(-1) !== Type.number) {
        throw new Error('a table mixes list items and keys; send two tables');
      }
    }
    const items: WireValue[] = [];
    for (let index = 1; index <= length; index++) {
      vm.rawGetIndex(at, index);
      items.push(this.read(vm.top, depth - 1));
      vm.pop(1);
    }
    return items;
  }

  #map(at: number, depth: number): WireValue {
    const { vm } = this;
    const map: Record<string, WireValue> = Object.create(null) as Record<string, WireValue>;
    vm.pushNil();
    while (vm.next(at)) {
      const value = vm.top;
      if (vm.type(value - 1) !== Type.string) throw new Error('a table key is not a string; use a list or text keys');
      map[this.#string(value - 1)] = this.read(value, depth - 1);
      vm.pop(1);
    }
    return map;
  }
}

/** JSON has no infinity; the wire format uses null. */
const finiteOrNull = (value: number): number | null => (Number.isFinite(value) ? value : null);

/** Pushes a value received from the server. */
export function pushValue(vm: LuauVm, value: WireValue, entities: Entities, depth = DEPTH_MAX): void {
  if (depth === 0 || !vm.reserve(4)) throw new Error(`value is nested deeper than ${DEPTH_MAX} levels`);
  if (value === null || value === undefined) vm.pushNil();
  else if (typeof value === 'boolean') vm.pushBoolean(value);
  else if (typeof value === 'number') vm.pushNumber(value);
  else if (typeof value === 'string') vm.pushString(value);
  else if (Array.isArray(value)) pushList(vm, value, entities, depth);
  else pushObject(vm, value as Record<string, WireValue>, entities, depth);
}

function pushList(vm: LuauVm, items: WireValue[], entities: Entities, depth: number): void {
  vm.pushTable(items.length, 0);
  const table = vm.top;
  items.forEach((item, i) => {
    pushValue(vm, item, entities, depth - 1);
    vm.rawSetIndex(table, i + 1);
  });
}

function pushObject(vm: LuauVm, value: Record<string, WireValue>, entities: Entities, depth: number): void {
  const keys = Object.keys(value);
  if (keys.length === 1 && Array.isArray(value.$v)) {
    const [x, y, z] = value.$v.map(Number);
    return vm.pushVector(x ?? 0, y ?? 0, z ?? 0);
  }
  if (keys.length === 1 && typeof value.$b === 'string') {
    return vm.pushBuffer(Uint8Array.from(atob(value.$b), (character) => character.charCodeAt(0)));
  }
  if (keys.length === 1 && typeof value.$e === 'number') return pushEntity(vm, value.$e, entities);
  vm.pushTable(0, keys.length);
  const table = vm.top;
  for (const key of keys) {
    vm.pushString(key);
    pushValue(vm, value[key]!, entities, depth - 1);
    vm.rawSet(table);
  }
}

function pushEntity(vm: LuauVm, id: number, entities: Entities): void {
  vm.pushReference(entities.make);
  vm.pushNumber(id);
  const outcome = vm.call(1, 1);
  if (!outcome.ok) vm.pushNil();
}
