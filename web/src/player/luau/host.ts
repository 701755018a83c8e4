// The functions below the client's Luau: the table `host` that only builtin/ sees. The server's are in
// crates/script/src/host.rs; names and meaning agree.
import type { WireValue } from '../events';
import { type Entities, pushValue, readValues } from './values';
import type { HostFunction, LuauVm } from './vm';

/** What client scripts can reach outside their VM. */
export interface ClientHost {
  fireServer(name: string, args: WireValue[]): void;
  /** `call` comes back with the answer, through `ScriptRuntime.dispatchResult`. */
  invokeServer(call: number, name: string, args: WireValue[]): void;
  log(level: string, text: string): void;
  uiCreate(id: number, kind: string, props: Record<string, unknown>): void;
  uiUpdate(id: number, props: Record<string, unknown>): void;
  uiRemove(id: number): void;
  isKeyDown(name: string): boolean;
  camera(): { position: [number, number, number]; forward: [number, number, number] };
  /** Entity id of the own character; 0 before there is one. */
  character(): number;
  entity(id: number): { position: [number, number, number]; velocity: [number, number, number] } | null;
  /** An attribute as the server last set it, or as the scene has it. */
  attribute(id: number, name: string): WireValue;
  playSound(name: string): void;
  /** A script requires a module that is not here: true when it is on its way. */
  wantModule(path: string): boolean;
}

/** What the natives need of the runtime. */
export interface Natives {
  readonly host: ClientHost;
  readonly entities: Entities;
  bytecode(path: string): Uint8Array | undefined;
}

const text = (vm: LuauVm, at: number): string => vm.string(at) ?? '';

const triple = (vm: LuauVm, v: readonly [number, number, number]): number => {
  vm.pushVector(v[0], v[1], v[2]);
  return 1;
};

/** Pushes nil and an error text, which the Luau above raises at the creator's line. */
function refuse(vm: LuauVm, message: string): number {
  vm.pushNil();
  vm.pushString(message);
  return 2;
}

/** Gives back nothing, or the text of what is wrong with the arguments. */
function send(vm: LuauVm, count: number, work: () => void): number {
  try {
    work();
    return 0;
  } catch (error) {
    vm.setTop(count);
    vm.pushString(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

const properties = (vm: LuauVm, at: number, natives: Natives): Record<string, unknown> =>
  readValues(vm, at, at, natives.entities)[0] as Record<string, unknown>;

export function nativeFunctions(natives: Natives): Record<string, HostFunction> {
  const { host } = natives;
  return {
    load: (vm) => {
      const path = text(vm, 1);
      const code = natives.bytecode(path);
      if (!code) return refuse(vm, `there is no script ${path} on this client`);
      vm.safeEnvironment(2);
      const problem = vm.load(path, code, 2);
      return problem === null ? 1 : refuse(vm, problem);
    },
    report: (vm) => {
      const frames = text(vm, 3).split('\n').map((line) => line.trim());
      const readable = frames.filter((line) => line && !line.startsWith('@builtin') && !line.startsWith('[C]'));
      host.log('error', [located(text(vm, 2), readable), ...readable].join('\n'));
      return 0;
    },
    log: (vm) => {
      const line = vm.number(3);
      const where = line > 0 ? `${text(vm, 2)}:${line}` : text(vm, 2);
      host.log(vm.number(1) === 0 ? 'info' : 'warn', `${where}: ${text(vm, 4)}`);
      return 0;
    },
    wantModule: (vm) => (vm.pushBoolean(!natives.bytecode(text(vm, 1)) && host.wantModule(text(vm, 1))), 1),
    freeze: (vm) => {
      vm.freeze(1);
      vm.pushCopy(1);
      return 1;
    },
    setVectorMetatable: (vm) => {
      vm.pushCopy(1);
      vm.setVectorMetatable();
      return 0;
    },
    fireServer: (vm, count) =>
      send(vm, count, () => host.fireServer(text(vm, 1), readValues(vm, 2, count, natives.entities))),
    invokeServer: (vm, count) =>
      send(vm, count, () => host.invokeServer(vm.number(1), text(vm, 2), readValues(vm, 3, count, natives.entities))),
    uiCreate: (vm) => (host.uiCreate(vm.number(1), text(vm, 2), properties(vm, 3, natives)), 0),
    uiUpdate: (vm) => (host.uiUpdate(vm.number(1), properties(vm, 2, natives)), 0),
    uiRemove: (vm) => (host.uiRemove(vm.number(1)), 0),
    isKeyDown: (vm) => (vm.pushBoolean(host.isKeyDown(text(vm, 1))), 1),
    cameraVector: (vm) => triple(vm, vm.number(1) === 0 ? host.camera().position : host.camera().forward),
    character: (vm) => (vm.pushNumber(host.character()), 1),
    entityVector: (vm) => {
      const id = vm.number(1);
      const entity = host.entity(id);
      if (!entity) return refuse(vm, `entity ${id} is not here (any more); check \`entity.Exists\` first`);
      return triple(vm, vm.number(2) === 0 ? entity.position : entity.velocity);
    },
    entityExists: (vm) => (vm.pushBoolean(host.entity(vm.number(1)) !== null), 1),
    entityAttribute: (vm) => (pushValue(vm, host.attribute(vm.number(1), text(vm, 2)), natives.entities), 1),
    playSound: (vm) => (host.playSound(text(vm, 1)), 0),
  };
}

/** An error of the engine's own files is shown at the line of the creator's that led there. */
function located(message: string, frames: string[]): string {
  const stated = /^(.+?\.luau:\d+): (.*)$/s.exec(message);
  if (stated && !stated[1]!.startsWith('@builtin')) return message;
  return frames[0] ? `${frames[0]}: ${stated?.[2] ?? message}` : (stated?.[2] ?? message);
}
